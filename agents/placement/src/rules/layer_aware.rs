//! Layer-aware ring memory-weighted partitioning (DCI Network), as read: the model is cut in proportion to memory, then
//! the segment with the most to compute goes to the fastest node that holds it, and so on.

use crate::problem::Problem;
use crate::rules::{Assigned, rmw};

/// The ring; that of plain memory weights where some segment fits no node that is left.
pub(crate) fn ring(problem: &Problem) -> Option<Assigned> {
    let plain = rmw::all(problem)?;
    let mut order = plain.order.clone();
    let firsts = std::iter::once(0).chain(plain.ends.iter().copied());
    // Each with the place in the order that its node takes.
    let mut segments: Vec<_> = order.iter_mut().zip(firsts.zip(plain.ends.iter().copied())).collect();
    let macs = |(first, end): (usize, usize)| problem.multiply_adds(first, end);
    segments.sort_by(|(_, a), (_, b)| macs(*b).total_cmp(&macs(*a)));
    let mut fastest: Vec<usize> = (0..problem.nodes()).collect();
    fastest.sort_by(|a, b| problem.alone(*a).total_cmp(&problem.alone(*b)));
    for (place, (first, end)) in segments {
        let holds = |node: &usize| problem.furthest(*node, first) >= end;
        let Some(at) = fastest.iter().position(holds) else { return Some(plain) };
        *place = fastest.remove(at);
    }
    Some(Assigned { order, ends: plain.ends })
}
