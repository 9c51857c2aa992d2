//! Rings that compute the same with the same cuts, so that what crosses each boundary can be compared, and that have no
//! operator in common.

use crate::best::{Effort, Found, chains};
use crate::columns::hop;
use crate::cuts::{Cut, bottleneck, price, sum};
use crate::problem::{Goal, Problem};

/// A first ring is planned with stages of at most these shares of the layers: one that fills the largest nodes leaves
/// cuts that no others hold.
const LONGEST: [f64; 8] = [1.0, 0.75, 0.5, 0.375, 0.25, 0.17, 0.12, 0.06];
/// First rings tried of each.
const LEADERS: usize = 4;
/// Orders that go on from one stage.
const WIDTH: usize = 64;

/// So many rings, or [`None`] if they were not found. `operators` has that of each node.
pub(crate) fn rings(
    problem: &Problem,
    goal: &Goal,
    operators: &[u64],
    taken: &[bool],
    effort: &Effort,
    count: usize,
) -> Option<Vec<Found>> {
    let mut best: Option<(f64, Vec<Found>)> = None;
    for share in LONGEST {
        let longest = ((problem.layers as f64 * share).ceil() as usize).max(1);
        let limited = problem.limited(longest);
        for leader in chains(&limited, goal, taken, effort).into_iter().take(LEADERS) {
            let Some(found) = follow(problem, goal, operators, taken, leader, count) else { continue };
            let cost = together(problem, goal, &found);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, found));
            }
        }
    }
    best.map(|(_, rings)| rings)
}

/// The slowest ring's latency and bottleneck, for whose time all are paid, and the energy of all.
fn together(problem: &Problem, goal: &Goal, rings: &[Found]) -> f64 {
    let slowest = rings.iter().map(|ring| bottleneck(problem, &ring.order, &ring.cut.ends)).fold(0.0, f64::max);
    let paid: f64 = rings.iter().map(|ring| price(problem, &ring.order)).sum();
    let mut latency: f64 = 0.0;
    let mut energy = 0.0;
    for ring in rings {
        let only = |latency: f64, energy: f64| {
            let weights = crate::objective::Weights { latency, energy, ..goal.weights };
            sum(problem, &Goal { weights, ..*goal }, &ring.order, &ring.cut.ends)
        };
        latency = latency.max(only(goal.weights.latency, 0.0));
        energy += only(0.0, goal.weights.energy);
    }
    latency + energy + goal.per_bottleneck(paid) * slowest
}

/// The first ring and others with its cut.
fn follow(
    problem: &Problem,
    goal: &Goal,
    operators: &[u64],
    taken: &[bool],
    leader: Found,
    count: usize,
) -> Option<Vec<Found>> {
    let ends = leader.cut.ends.clone();
    let mut rings = vec![leader];
    while rings.len() < count {
        let busy = |node: usize| {
            rings.iter().flat_map(|ring| &ring.order).any(|other| operators.get(*other) == operators.get(node))
        };
        let free: Vec<usize> =
            (0..problem.nodes()).filter(|node| !taken.get(*node).copied().unwrap_or(false) && !busy(*node)).collect();
        let order = if goal.adds() {
            fill::<true>(problem, goal, &free, &ends)
        } else {
            fill::<false>(problem, goal, &free, &ends)
        }?;
        let cost = sum(problem, goal, &order, &ends)
            + goal.per_bottleneck(price(problem, &order)) * bottleneck(problem, &order, &ends);
        rings.push(Found { order, cut: Cut { cost, ends: ends.clone() } });
    }
    Some(rings)
}

/// The best nodes found for stages with these ends.
fn fill<const ADD: bool>(problem: &Problem, goal: &Goal, free: &[usize], ends: &[usize]) -> Option<Vec<usize>> {
    let mut orders: Vec<(f64, Vec<usize>)> = vec![(0.0, vec![])];
    let mut first = 0;
    for end in ends {
        let mut longer = Vec::with_capacity(orders.len() * free.len());
        for (cost, order) in &orders {
            for node in free {
                if order.contains(node) || problem.furthest(*node, first) < *end {
                    continue;
                }
                let seconds = problem.seconds(*node, first, *end);
                let weights = goal.weights;
                let own = if ADD {
                    seconds
                        * (weights.latency
                            + weights.energy * problem.watts(*node)
                            + goal.per_bottleneck(problem.price(*node)))
                } else {
                    seconds
                };
                let handed = order.last().map_or(0.0, |last| hop::<ADD>(problem, goal, *last, *node, first));
                let cost = if ADD { cost + own + handed } else { cost.max(own).max(handed) };
                if cost < f64::INFINITY {
                    longer.push((cost, [order.as_slice(), &[*node]].concat()));
                }
            }
        }
        longer.sort_by(|a, b| a.0.total_cmp(&b.0));
        longer.truncate(WIDTH);
        orders = longer;
        first = *end;
    }
    orders.into_iter().next().map(|(_, order)| order)
}
