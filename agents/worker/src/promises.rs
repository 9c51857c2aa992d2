//! Lanes and disk held for offers that may still be accepted, so that no more are signed than can be kept.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_types::{JobId, Lane};

/// What is held for a lane.
#[derive(Clone, Copy, Debug)]
struct Promise {
    /// When its last offer expires, seconds; none once the lane is ours.
    expires: Option<u64>,
    /// Bytes of disk that it takes to begin, as long as they are not fetched.
    disk: u64,
}

impl Promise {
    fn is_open(&self, now: u64) -> bool {
        self.expires.is_some_and(|end| end >= now)
    }
}

/// Lanes that were offered, and those that are ours and have not fetched their files. A restart forgets them.
#[derive(Debug, Default)]
pub struct Promises(Mutex<HashMap<Lane, Promise>>);

impl Promises {
    fn held(&self) -> MutexGuard<'_, HashMap<Lane, Promise>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a lane from `now` until `expires` if `free` lanes leave a place beside the others that are held; whether
    /// it does. Asked again, a lane keeps its place.
    pub fn hold(&self, lane: Lane, (now, expires): (u64, u64), free: impl FnOnce() -> u16) -> bool {
        let mut held = self.held();
        held.retain(|_, promise| promise.expires.is_none() || promise.is_open(now));
        let others = held.iter().filter(|(other, promise)| **other != lane && promise.expires.is_some()).count();
        let place = others < usize::from(free());
        if place {
            held.entry(lane).or_insert(Promise { expires: None, disk: 0 }).expires = Some(expires);
        }
        place
    }

    /// Holds `needed` bytes of the disk's `room` for a lane that is held, if there are as many beside what is held for
    /// others; how many there are.
    pub fn reserve(&self, lane: Lane, needed: u64, room: u64) -> u64 {
        let mut held = self.held();
        let others = held.iter().filter(|(other, _)| **other != lane).map(|(_, promise)| promise.disk);
        let left = room.saturating_sub(others.fold(0, u64::saturating_add));
        if let Some(promise) = held.get_mut(&lane) {
            promise.disk = if left >= needed { needed } else { 0 };
        }
        left
    }

    /// Lanes held at `now`.
    pub fn count(&self, now: u64) -> u16 {
        let held = self.held().values().filter(|promise| promise.is_open(now)).count();
        u16::try_from(held).unwrap_or(u16::MAX)
    }

    /// A job has accepted its offers, of us that for one lane or none: its others are free, and that one needs its disk
    /// until it has fetched its files.
    pub fn accepted(&self, job: JobId, ours: Option<Lane>) {
        self.held().retain(|lane, promise| {
            if Some(*lane) == ours {
                promise.expires = None;
            }
            lane.job != job || Some(*lane) == ours
        });
    }

    /// A lane of ours has its files.
    pub fn fetched(&self, lane: Lane) {
        self.held().remove(&lane);
    }

    /// Frees what is held for a job that takes no offers any more.
    pub fn release(&self, job: JobId) {
        self.held().retain(|lane, _| lane.job != job);
    }
}
