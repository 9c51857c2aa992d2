//! How the operators of a stage fall into segments.

use std::ops::Range;

use tensorlink_types::Segment;

use crate::step::Phase;

/// Runs of equal phases.
pub(super) fn segments(phases: impl Iterator<Item = Phase>) -> Vec<Segment> {
    let mut runs: Vec<(Phase, Range<u32>)> = Vec::new();
    for (index, phase) in (0u32..).zip(phases) {
        let end = index.saturating_add(1);
        match runs.last_mut() {
            Some((last, run)) if *last == phase => run.end = end,
            _ => runs.push((phase, index..end)),
        }
    }
    let segment = |(phase, operators)| match phase {
        Phase::Prepare => Segment::Prepare { operators },
        Phase::Forward(micro_batch) => Segment::Forward { micro_batch, operators },
        Phase::Backward(micro_batch) => Segment::Backward { micro_batch, operators },
        Phase::Update => Segment::Update { operators },
    };
    runs.into_iter().map(segment).collect()
}
