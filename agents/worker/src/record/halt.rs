//! An interval that exceeds a bound of its job is the last one of its lane.

use serde::{Deserialize, Serialize};
use tensorlink_node::bounds::{Bounds, Excess, Readings};

use super::LaneRecord;

/// Where a lane goes no further, and why.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Halt {
    /// Intervals that are done, the one that exceeds the bound being the last of them.
    pub intervals: u32,
    /// What is exceeded, and by how much.
    pub excess: Excess,
    /// All that this interval told.
    pub readings: Readings,
}

impl Halt {
    /// By what the interval before `record.next` told, if it exceeds a bound. The first loss is its own where there was
    /// none before.
    pub(crate) fn of(bounds: &Bounds, readings: Readings, record: &LaneRecord) -> Option<Self> {
        let excess = bounds.exceeded(readings, record.first_loss.or(readings.loss))?;
        Some(Self { intervals: record.next, excess, readings })
    }
}
