//! Lanes held for offers that may still be accepted, so that no more are signed than can be kept.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_types::{JobId, Lane};

/// Lanes that were offered, each with the time (seconds) at which its last offer expires. A restart forgets them.
#[derive(Debug, Default)]
pub struct Promises(Mutex<HashMap<Lane, u64>>);

impl Promises {
    fn held(&self) -> MutexGuard<'_, HashMap<Lane, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a lane from `now` until `expires` if `free` lanes leave a place beside the others that are held; whether
    /// it does. Asked again, a lane keeps its place.
    pub fn hold(&self, lane: Lane, (now, expires): (u64, u64), free: impl FnOnce() -> u16) -> bool {
        let mut held = self.held();
        held.retain(|_, end| *end >= now);
        let others = held.keys().filter(|other| **other != lane).count();
        let place = others < usize::from(free());
        if place {
            held.insert(lane, expires);
        }
        place
    }

    /// Lanes held at `now`.
    pub fn count(&self, now: u64) -> u16 {
        let held = self.held().values().filter(|end| **end >= now).count();
        u16::try_from(held).unwrap_or(u16::MAX)
    }

    /// Frees the lanes of a job that takes no offers any more.
    pub fn release(&self, job: JobId) {
        self.held().retain(|lane, _| lane.job != job);
    }
}
