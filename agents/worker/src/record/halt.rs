//! An interval that exceeds a bound of its job is the last one of its lane.

use serde::{Deserialize, Serialize};
use tensorlink_node::bounds::{Excess, Readings};

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
