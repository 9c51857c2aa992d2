//! Ring memory-weighted partitioning (exo Labs): nodes in order of memory, each with layers in proportion to it.

use crate::problem::Problem;
use crate::rules::{Assigned, by_memory, proportional, repaired};

/// Over all nodes.
pub(crate) fn all(problem: &Problem) -> Option<Assigned> {
    ring(problem, &by_memory(problem))
}

/// Over the fewest of the largest nodes that hold the model.
pub(crate) fn smallest(problem: &Problem) -> Option<Assigned> {
    let order = by_memory(problem);
    let needed = problem.bytes(0, problem.layers);
    let mut sum = 0.0;
    (1..).zip(&order).find_map(|(count, last)| {
        sum += problem.memory(*last);
        if sum >= needed { ring(problem, order.get(..count)?) } else { None }
    })
}

/// The ring of these nodes.
fn ring(problem: &Problem, order: &[usize]) -> Option<Assigned> {
    let weights: Vec<f64> = order.iter().map(|node| problem.memory(*node).max(0.0)).collect();
    repaired(problem, order, proportional(&weights, problem.layers))
}
