//! What a step holds while it runs.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::engine::StepContext;

/// What a step holds while it runs.
pub(super) struct Step<T> {
    pub(super) context: StepContext,
    pub(super) outputs: Vec<Option<T>>,
    /// Readers still to come, by operator.
    pub(super) pending: Vec<u32>,
    pub(super) from_previous: Vec<Option<T>>,
    pub(super) from_next: Vec<Option<T>>,
    pub(super) done: Vec<bool>,
    pub(super) rest: Option<Rest>,
}

/// What of a pass is left when its neighbour has what it waits for.
pub(super) struct Rest {
    pub(super) segment: usize,
    pub(super) operators: Range<u32>,
    /// The micro-batch whose received tensors nobody reads after it.
    pub(super) over: Option<u32>,
}

/// Counts a read and drops the output after the last one.
pub(super) fn release<T>(step: &mut Step<T>, index: u32, observed: &BTreeSet<u32>) {
    let index_of = index as usize;
    let Some(pending) = step.pending.get_mut(index_of) else { return };
    *pending = pending.saturating_sub(1);
    if *pending == 0
        && !observed.contains(&index)
        && let Some(slot) = step.outputs.get_mut(index_of)
    {
        *slot = None;
    }
}
