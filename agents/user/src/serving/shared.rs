//! What all texts of a job share: its lanes, its numbers, its receipts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorlink_node::Ports;
use tensorlink_types::JobId;

use super::archive::Archive;
use super::boundaries::Boundaries;
use super::lane::LaneClient;
use super::numbers::Numbers;

/// Seconds in which a lane that failed is the last to be tried.
const DOWN: u64 = 30;

/// What all texts of a job share.
pub(super) struct Shared {
    pub(super) ports: Ports,
    pub(super) job: JobId,
    pub(super) boundaries: Boundaries,
    pub(super) longest: u32,
    /// Tokens that the job pays a lane.
    pub(super) most: u32,
    /// By stage: those that could be taken up, in the order of replicas.
    pub(super) lanes: Vec<Vec<Arc<LaneClient>>>,
    /// When a lane failed last, seconds.
    pub(super) down: Mutex<HashMap<(usize, usize), u64>>,
    pub(super) numbers: Mutex<Numbers>,
    pub(super) archive: Mutex<Archive>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("job", &self.job).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn lane(&self, stage: usize, replica: usize) -> Option<&LaneClient> {
        self.lanes.get(stage)?.get(replica).map(Arc::as_ref)
    }

    pub(super) fn replicas(&self, stage: usize) -> usize {
        self.lanes.get(stage).map_or(0, Vec::len)
    }

    /// The replica that gets a text first: texts take turns among those that did not fail lately.
    pub(super) fn first_replica(&self, stage: usize, text: u32) -> usize {
        let replicas = self.replicas(stage).max(1);
        let order = |offset: usize| (text as usize).wrapping_add(offset) % replicas;
        (0..replicas).map(order).find(|replica| !self.is_down(stage, *replica)).unwrap_or_else(|| order(0))
    }

    /// Whether every stage has a lane that did not fail lately.
    pub(super) fn alive(&self) -> bool {
        let up = |stage: usize| (0..self.replicas(stage)).any(|replica| !self.is_down(stage, replica));
        (0..self.lanes.len()).all(up)
    }

    fn is_down(&self, stage: usize, replica: usize) -> bool {
        let now = self.ports.clock.now();
        let down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        down.get(&(stage, replica)).is_some_and(|at| now < at.saturating_add(DOWN))
    }

    pub(super) fn failed(&self, stage: usize, replica: usize) {
        let now = self.ports.clock.now();
        self.down.lock().unwrap_or_else(PoisonError::into_inner).insert((stage, replica), now);
    }

    pub(super) fn answered(&self, stage: usize, replica: usize) {
        self.down.lock().unwrap_or_else(PoisonError::into_inner).remove(&(stage, replica));
    }

    pub(super) fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn archive(&self) -> MutexGuard<'_, Archive> {
        self.archive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
