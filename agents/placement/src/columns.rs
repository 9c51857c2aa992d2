//! The dynamic programs over cuts. A column has, for each boundary between layers, the least cost of what lies before
//! it or behind it.
//!
//! Costs of stages and hops are added if sums count, and else the largest counts: `ADD` says which. Costs never fall
//! along a chain either way, so what reaches `bound` is dropped.

use std::iter::{once, repeat_n};

use crate::problem::{Goal, Problem};

/// One cost after another.
#[inline]
fn and<const ADD: bool>(a: f64, b: f64) -> f64 {
    if ADD { a + b } else { a.max(b) }
}

/// The cost of a node's stage that takes so many seconds.
#[inline]
fn stage<const ADD: bool>(problem: &Problem, goal: &Goal, node: usize, seconds: f64) -> f64 {
    if ADD { seconds * (goal.weights.latency + goal.weights.energy * problem.watts(node)) } else { seconds }
}

/// The cost of a hop; infinite over a link that is closed or slower than the cap.
#[inline]
pub(crate) fn hop<const ADD: bool>(problem: &Problem, goal: &Goal, from: usize, to: usize, boundary: usize) -> f64 {
    let flow = problem.flow(from, to, boundary);
    match () {
        () if flow > goal.cap => f64::INFINITY,
        () if ADD => goal.weights.latency * problem.wait(from, to, boundary),
        () => flow,
    }
}

/// Column after `node`, from the column before it. `previous` is who handed to it.
pub(crate) fn extend<const ADD: bool>(
    problem: &Problem,
    goal: &Goal,
    before: &[f64],
    previous: Option<usize>,
    node: usize,
    bound: f64,
    after: &mut [f64],
) {
    after.fill(f64::INFINITY);
    for (first, cost) in before.iter().enumerate().take(problem.layers) {
        if *cost >= bound {
            continue;
        }
        let entered = previous.map_or(*cost, |from| and::<ADD>(*cost, hop::<ADD>(problem, goal, from, node, first)));
        if entered >= bound {
            continue;
        }
        for (end, least) in after.iter_mut().enumerate().take(problem.furthest(node, first) + 1).skip(first + 1) {
            let seconds = problem.seconds(node, first, end);
            let cost = and::<ADD>(entered, stage::<ADD>(problem, goal, node, seconds));
            if seconds > goal.cap || cost >= bound {
                break;
            }
            *least = least.min(cost);
        }
    }
}

/// Column before `node`, from that before `next`, which it hands to; without `next`, it must end the model.
pub(crate) fn prepend<const ADD: bool>(
    problem: &Problem,
    goal: &Goal,
    behind: &[f64],
    next: Option<usize>,
    node: usize,
    before: &mut [f64],
) {
    before.fill(f64::INFINITY);
    for (end, cost) in behind.iter().enumerate().skip(1) {
        if *cost == f64::INFINITY {
            continue;
        }
        let left = next.map_or(*cost, |to| and::<ADD>(*cost, hop::<ADD>(problem, goal, node, to, end)));
        if left == f64::INFINITY {
            continue;
        }
        for (first, least) in before.iter_mut().enumerate().take(end).rev() {
            let seconds = problem.seconds(node, first, end);
            if problem.furthest(node, first) < end || seconds > goal.cap {
                break;
            }
            *least = least.min(and::<ADD>(left, stage::<ADD>(problem, goal, node, seconds)));
        }
    }
}

/// The least cost of both columns over a boundary between `from` and `to`; without one of them there is no hop.
pub(crate) fn meet<const ADD: bool>(
    problem: &Problem,
    goal: &Goal,
    before: &[f64],
    from: Option<usize>,
    behind: &[f64],
    to: Option<usize>,
) -> f64 {
    let mut least = f64::INFINITY;
    for (boundary, (cost, rest)) in before.iter().zip(behind).enumerate() {
        let both = and::<ADD>(*cost, *rest);
        if both < least {
            let crossed = match (from, to) {
                (Some(from), Some(to)) => and::<ADD>(both, hop::<ADD>(problem, goal, from, to, boundary)),
                _ => both,
            };
            least = least.min(crossed);
        }
    }
    least
}

/// Where nodes end in a best cut, from the columns after each of them; the first column is that before any.
pub(crate) fn trace<const ADD: bool>(
    problem: &Problem,
    goal: &Goal,
    order: &[usize],
    columns: &[Vec<f64>],
) -> Option<Vec<usize>> {
    let mut ends = Vec::with_capacity(order.len());
    let mut end = problem.layers;
    let mut earlier = order.iter().rev().skip(1);
    for (node, column) in order.iter().zip(columns).rev() {
        ends.push(end);
        let previous = earlier.next();
        let mut best = (f64::INFINITY, None);
        for (first, cost) in column.iter().enumerate().take(end).rev() {
            let seconds = problem.seconds(*node, first, end);
            if problem.furthest(*node, first) < end || seconds > goal.cap {
                break;
            }
            let entered =
                previous.map_or(*cost, |from| and::<ADD>(*cost, hop::<ADD>(problem, goal, *from, *node, first)));
            let cost = and::<ADD>(entered, stage::<ADD>(problem, goal, *node, seconds));
            if cost < best.0 {
                best = (cost, Some(first));
            }
        }
        end = best.1?;
    }
    ends.reverse();
    (end == 0).then_some(ends)
}

/// The column before any node.
pub(crate) fn start(problem: &Problem) -> Vec<f64> {
    once(0.0).chain(repeat_n(f64::INFINITY, problem.layers)).collect()
}

/// The column behind every node.
pub(crate) fn finish(problem: &Problem) -> Vec<f64> {
    repeat_n(f64::INFINITY, problem.layers).chain(once(0.0)).collect()
}
