//! How other systems place layers, each written from its description. They are compared with, and what is found by them
//! is where the joint search begins.
//!
//! | module | rule |
//! |---|---|
//! | [`rmw`] | exo's ring, by memory: over all nodes, over the smallest set that fits, with exact cuts |
//! | [`layer_aware`] | DCI's evolution of it |
//! | [`petals`] | servers that choose blocks by throughput |
//! | [`parallax`] | a dynamic program over layers, and water-filling by rates |
//! | [`route`] | a client's path over servers that hold spans, for the last two |

pub(crate) mod layer_aware;
pub(crate) mod parallax;
pub(crate) mod petals;
pub(crate) mod rmw;
pub(crate) mod route;

use crate::problem::Problem;

/// An order of nodes, and where the layers of each end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Assigned {
    pub(crate) order: Vec<usize>,
    pub(crate) ends: Vec<usize>,
}

/// Nodes by falling memory, at most one for each layer.
pub(crate) fn by_memory(problem: &Problem) -> Vec<usize> {
    let mut order: Vec<usize> = (0..problem.nodes()).collect();
    order.sort_by(|a, b| problem.memory(*b).total_cmp(&problem.memory(*a)));
    order.truncate(problem.layers);
    order
}

/// Ends of shares of the layers in proportion to weights, each boundary rounded.
pub(crate) fn proportional(weights: &[f64], layers: usize) -> Vec<usize> {
    let all: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let ends = weights.iter().map(|weight| {
        sum += weight;
        ((sum / all * layers as f64).round() as usize).min(layers)
    });
    let mut ends: Vec<usize> = ends.collect();
    if let Some(last) = ends.last_mut() {
        *last = layers;
    }
    ends
}

/// Pushes whole layers along the chain where rounding put more on a node than it holds, once each way, and drops nodes
/// without layers. No description has this; without it, their rules would fail where they are one layer off.
pub(crate) fn repaired(problem: &Problem, order: &[usize], mut ends: Vec<usize>) -> Option<Assigned> {
    let fits = |node: usize, first: usize, end: usize| first >= end || problem.furthest(node, first) >= end;
    let mut first = 0;
    for (node, end) in order.iter().zip(&mut ends).take(order.len().saturating_sub(1)) {
        while !fits(*node, first, *end) {
            *end -= 1;
        }
        first = *end;
    }
    let mut end = ends.last().copied().unwrap_or(0);
    for (node, first) in order.iter().skip(1).zip(&mut ends).rev() {
        while !fits(*node, *first, end) {
            *first += 1;
        }
        end = *first;
    }
    let mut kept = Assigned::default();
    let mut first = 0;
    for (node, end) in order.iter().zip(ends) {
        if end > first {
            if !fits(*node, first, end) {
                return None;
            }
            kept.order.push(*node);
            kept.ends.push(end);
            first = end;
        }
    }
    (first == problem.layers).then_some(kept)
}
