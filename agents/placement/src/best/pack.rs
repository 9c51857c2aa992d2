//! Several chains of one fleet, so that the throughput of all together is large.

use crate::best::sweep::{scarce, under};
use crate::best::{Effort, Found, chains};
use crate::cuts::cut;
use crate::moves::improve;
use crate::objective::Weights;
use crate::problem::{Goal, Problem};

/// Caps tried, from that of the fastest chain to so many times it.
const CAPS: usize = 16;
const SLOWEST: f64 = 60.0;

/// Up to `most` chains without a node in common.
pub(crate) fn pack(problem: &Problem, most: usize) -> Vec<Found> {
    let goal = Goal { cap: f64::MAX, weights: Weights { bottleneck: 1.0, ..Weights::NONE } };
    let effort = Effort { width: 32, sets: 1, shorter: 0, caps: 28, improved: 1, tried: 500 };
    let Some(single) = chains(problem, &goal, &[], &effort).into_iter().next() else { return vec![] };
    let mut best = vec![single.clone()];
    for step in 0..CAPS {
        let cap = single.cut.cost * SLOWEST.powf(step as f64 / (CAPS - 1) as f64);
        for enter in weights(problem, cap) {
            let found = below(problem, &goal, cap, &enter, most, &effort);
            if throughput(&found) > throughput(&best) {
                best = found;
            }
        }
    }
    polish(problem, &goal, &mut best);
    best
}

/// Units a second of all chains.
pub(crate) fn throughput(chains: &[Found]) -> f64 {
    chains.iter().map(|found| 1.0 / found.cut.cost).sum()
}

/// What it costs that a node is in a chain: the speed and the memory that others then lack; and that with its number.
fn weights(problem: &Problem, cap: f64) -> [Vec<f64>; 2] {
    let nodes = problem.nodes();
    let speeds: f64 = (0..nodes).map(|node| 1.0 / problem.alone(node)).sum();
    let memory: f64 = problem.memory.iter().map(|bytes| bytes.max(0.0)).sum();
    let share = |node: usize| 1.0 / problem.alone(node) / speeds + 0.5 * problem.memory[node].max(0.0) / memory;
    let scarce = scarce(problem, cap);
    let both = |node: usize| 0.5 * share(node) + 0.5 * scarce[node] / nodes as f64;
    [(0..nodes).map(share).collect(), (0..nodes).map(both).collect()]
}

/// Chains below a cap, one after another, until none is left.
fn below(problem: &Problem, goal: &Goal, cap: f64, enter: &[f64], most: usize, effort: &Effort) -> Vec<Found> {
    let mut taken = vec![false; problem.nodes()];
    let mut found = Vec::new();
    while found.len() < most {
        let order = under(problem, cap, enter, &taken, effort, 1).into_iter().next();
        let Some((order, cut)) = order.and_then(|order| cut(problem, goal, &order).map(|cut| (order, cut))) else {
            break;
        };
        for node in &order {
            taken[*node] = true;
        }
        found.push(Found { order, cut });
    }
    found
}

/// Lets each chain take nodes that none has.
fn polish(problem: &Problem, goal: &Goal, chains: &mut [Found]) {
    let mut taken = vec![false; problem.nodes()];
    for node in chains.iter().flat_map(|found| &found.order) {
        taken[*node] = true;
    }
    for found in chains.iter_mut() {
        for node in &found.order {
            taken[*node] = false;
        }
        let (order, _) = improve(problem, *goal, &found.order, &taken, 1_000);
        if let Some(cut) = cut(problem, goal, &order)
            && cut.cost < found.cut.cost
        {
            *found = Found { order, cut };
        }
        for node in &found.order {
            taken[*node] = true;
        }
    }
}
