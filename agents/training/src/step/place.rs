//! Where new nodes go.

use super::Phase;

/// Where new nodes go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) phase: Phase,
    pub(super) layer: usize,
}
