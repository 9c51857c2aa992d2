//! Layer-aware ring memory-weighted partitioning (DCI Network), as read: the model is cut in proportion to memory, then
//! the segment with the most to compute goes to the fastest node that holds it, and so on.

use crate::problem::Problem;
use crate::rules::{Assigned, rmw};

/// The ring; that of plain memory weights where some segment fits no node that is left.
pub(crate) fn ring(problem: &Problem) -> Option<Assigned> {
    let plain = rmw::all(problem)?;
    let firsts: Vec<usize> = std::iter::once(0).chain(plain.ends.iter().copied()).take(plain.ends.len()).collect();
    let mut segments: Vec<usize> = (0..plain.ends.len()).collect();
    let macs = |segment: &usize| problem.multiply_adds(firsts[*segment], plain.ends[*segment]);
    segments.sort_by(|a, b| macs(b).total_cmp(&macs(a)));
    let mut fastest: Vec<usize> = (0..problem.nodes()).collect();
    fastest.sort_by(|a, b| problem.alone(*a).total_cmp(&problem.alone(*b)));
    let mut order = plain.order.clone();
    for segment in segments {
        let holds = |node: &usize| problem.furthest(*node, firsts[segment]) >= plain.ends[segment];
        let Some(at) = fastest.iter().position(holds) else { return Some(plain) };
        order[segment] = fastest.remove(at);
    }
    Some(Assigned { order, ends: plain.ends })
}
