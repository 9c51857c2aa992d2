//! Lanes, disk and memory held for offers that may still be accepted and for lanes that are ours, so that no more are
//! signed than can be kept. What was signed outlives a restart: with less memory than before, too, a worker does what
//! it has promised.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tensorlink_node::Journal;
use tensorlink_node::budget::{Budget, Hold};
use tensorlink_node::footprint::Footprint;
use tensorlink_node::journal::JournalError;
use tensorlink_node::shard::{Room, ShardError};
use tensorlink_types::{JobId, Lane};

/// How long an offer binds, seconds.
pub(crate) const VALIDITY: u64 = 600;

/// The record on disk.
const FILE: &str = "promises";

/// What is held for a lane.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Promise {
    lane: Lane,
    /// When its last offer expires, seconds.
    expires: u64,
    /// Whether an offer was signed. Only those are written down.
    #[serde(skip)]
    signed: bool,
    /// Whether the lane is ours, by events that were told since the start.
    #[serde(skip)]
    accepted: bool,
    /// Bytes of disk that it takes to begin, as long as they are not fetched.
    disk: u64,
    /// Memory that it takes until its job is settled.
    memory: Footprint,
    /// Bytes of memory beside that, for texts beyond the first.
    more: u64,
}

impl Promise {
    /// Whether it is not ours, and may become ours.
    const fn is_open(&self, now: u64) -> bool {
        !self.accepted && self.expires >= now
    }
}

#[derive(Debug)]
struct Held {
    lanes: HashMap<Lane, Promise>,
    /// Memory of all lanes together.
    memory: Hold,
}

impl Held {
    /// Memory that the lanes take: what each of them computes with, and the largest repetition. Saturates.
    fn needed(lanes: &HashMap<Lane, Promise>) -> u64 {
        let of_lanes = lanes.values().map(|promise| promise.memory.lane.saturating_add(promise.more));
        let repeat = lanes.values().map(|promise| promise.memory.repeat).max().unwrap_or_default();
        of_lanes.fold(repeat, u64::saturating_add)
    }

    /// Bytes of the disk's `room` beside what is held for lanes that count.
    fn disk_left(&self, room: u64, counts: impl Fn(&Promise) -> bool) -> u64 {
        let held = self.lanes.values().filter(|promise| counts(promise)).map(|promise| promise.disk);
        room.saturating_sub(held.fold(0, u64::saturating_add))
    }

    /// Takes what its lanes need, whether it is there or not.
    fn owe(&mut self) {
        self.memory.owe(Self::needed(&self.lanes));
    }

    fn retain(&mut self, keeps: impl Fn(&Promise) -> bool) {
        self.lanes.retain(|_, promise| keeps(promise));
        self.owe();
    }
}

/// Lanes that were offered, and those that are ours until their jobs are settled.
#[derive(Debug)]
pub struct Promises {
    journal: Journal,
    budget: Arc<Budget>,
    held: Mutex<Held>,
}

impl Promises {
    /// Takes up what was promised before `now`, seconds: it is owed, however little memory there is.
    ///
    /// # Errors
    /// [`JournalError`] if the record cannot be read.
    pub fn open(journal: Journal, budget: Arc<Budget>, now: u64) -> Result<Self, JournalError> {
        let kept: Vec<Promise> = journal.read(FILE)?.unwrap_or_default();
        // Which of them are ours, events tell that are not told yet.
        let grace = now.saturating_add(VALIDITY);
        let kept = kept.into_iter().map(|promise| {
            let expires = promise.expires.max(grace);
            Promise { expires, signed: true, ..promise }
        });
        let mut held = Held { lanes: kept.map(|promise| (promise.lane, promise)).collect(), memory: budget.nothing() };
        held.owe();
        let (promised, lent) = (held.memory.bytes(), budget.total());
        if promised > lent {
            tracing::warn!(promised, lent, "less memory is lent than was promised: what was promised is done first");
        }
        Ok(Self { journal, budget, held: Mutex::new(held) })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what is held for a lane, before its offer is signed; whether it still is.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails.
    pub fn sign(&self, lane: Lane) -> Result<bool, JournalError> {
        match self.held().lanes.get_mut(&lane) {
            Some(promise) => promise.signed = true,
            None => return Ok(false),
        }
        self.keep().map(|()| true)
    }

    /// Frees what is held for a lane that is not offered after all.
    pub fn withdraw(&self, lane: Lane) {
        self.held().retain(|promise| promise.lane != lane || promise.signed || promise.accepted);
    }

    fn keep(&self) -> Result<(), JournalError> {
        let held = self.held();
        let mut lanes: Vec<&Promise> = held.lanes.values().filter(|held| held.signed || held.accepted).collect();
        if lanes.is_empty() {
            return self.journal.remove(FILE);
        }
        lanes.sort_by_key(|promise| promise.lane);
        self.journal.write(FILE, &lanes)
    }

    /// Holds a lane from `now` until `expires` if `free` lanes leave a place beside the others that are held; whether
    /// it does. Asked again, a lane keeps its place.
    pub fn hold(&self, lane: Lane, (now, expires): (u64, u64), free: impl FnOnce() -> u16) -> bool {
        let mut held = self.held();
        held.retain(|promise| promise.accepted || promise.is_open(now));
        let others = held.lanes.values().filter(|promise| promise.lane != lane && !promise.accepted).count();
        let place = others < usize::from(free());
        if place {
            let (signed, accepted, memory) = (false, false, Footprint::default());
            let fresh = Promise { lane, expires, signed, accepted, disk: 0, memory, more: 0 };
            held.lanes.entry(lane).or_insert(fresh).expires = expires;
        }
        place
    }

    /// Holds `needed` bytes of the disk's `room` for a lane that is held, if there are as many beside what is held for
    /// others; how many there are.
    pub fn reserve(&self, lane: Lane, needed: u64, room: u64) -> u64 {
        let mut held = self.held();
        let left = held.disk_left(room, |promise| promise.lane != lane);
        if let Some(promise) = held.lanes.get_mut(&lane) {
            promise.disk = if left >= needed { needed } else { 0 };
        }
        left
    }

    /// Memory for a lane that is held, if there is as much.
    pub const fn room(&self, lane: Lane) -> LaneRoom<'_> {
        LaneRoom { promises: self, lane, owed: false }
    }

    /// Memory for a lane that is ours, whether it is there or not.
    pub const fn owed(&self, lane: Lane) -> LaneRoom<'_> {
        LaneRoom { promises: self, lane, owed: true }
    }

    /// Takes half of the memory that is left for texts of a lane of ours beyond the first, the first time it is asked
    /// for: how much the lane has, bytes.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails.
    pub fn more(&self, lane: Lane) -> Result<u64, JournalError> {
        let more = {
            let mut held = self.held();
            let half = self.budget.left() / 2;
            let Some(promise) = held.lanes.get_mut(&lane) else { return Ok(0) };
            if promise.more > 0 {
                return Ok(promise.more);
            }
            promise.more = half;
            held.owe();
            half
        };
        self.keep()?;
        Ok(more)
    }

    /// Bytes of the disk's `room` that are held for no lane.
    pub fn disk_left(&self, room: u64) -> u64 {
        self.held().disk_left(room, |_| true)
    }

    /// Memory that a further lane may take, bytes.
    pub fn left(&self) -> u64 {
        self.budget.left()
    }

    /// Lanes held at `now` that are not ours.
    pub fn count(&self, now: u64) -> u16 {
        let held = self.held().lanes.values().filter(|promise| promise.is_open(now)).count();
        u16::try_from(held).unwrap_or(u16::MAX)
    }

    /// A job has accepted its offers, of us that for one lane or none: its others are free.
    pub fn accepted(&self, job: JobId, ours: Option<Lane>) {
        let mut held = self.held();
        if let Some(promise) = ours.and_then(|lane| held.lanes.get_mut(&lane)) {
            promise.accepted = true;
        }
        held.retain(|promise| promise.lane.job != job || Some(promise.lane) == ours);
    }

    /// A lane of ours has its files.
    pub fn fetched(&self, lane: Lane) {
        if let Some(promise) = self.held().lanes.get_mut(&lane) {
            promise.disk = 0;
        }
    }

    /// Frees what is held for a job that takes no offers any more, or is settled.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails.
    pub fn release(&self, job: JobId) -> Result<(), JournalError> {
        let mut held = self.held();
        if held.lanes.keys().all(|lane| lane.job != job) {
            return Ok(());
        }
        held.retain(|promise| promise.lane.job != job);
        drop(held);
        self.keep()
    }

    /// Gives a lane what it needs, if it is owed or there is as much; what was missing otherwise.
    fn give(&self, lane: Lane, needs: Footprint, owed: bool) -> Result<(), ShardError> {
        let mut held = self.held();
        let before = held.lanes.get(&lane).copied();
        let fresh = Promise { lane, expires: 0, signed: false, accepted: true, disk: 0, memory: needs, more: 0 };
        let mut lanes = held.lanes.clone();
        lanes.remove(&lane);
        let others = Held::needed(&lanes);
        lanes.insert(lane, Promise { memory: needs, ..before.unwrap_or(fresh) });
        let all = Held::needed(&lanes);
        if owed {
            held.memory.owe(all);
        } else if before.is_none() || !held.memory.resize(all) {
            let left = self.budget.left().saturating_add(held.memory.bytes()).saturating_sub(others);
            let (needed, limit) = (all.saturating_sub(others), self.budget.total());
            return Err(ShardError::Memory { needed, left, limit });
        }
        held.lanes = lanes;
        Ok(())
    }
}

/// Where a lane's memory comes from.
pub struct LaneRoom<'a> {
    promises: &'a Promises,
    lane: Lane,
    owed: bool,
}

#[async_trait]
impl Room for LaneRoom<'_> {
    async fn take(&self, needs: Footprint) -> Result<Option<Hold>, ShardError> {
        self.promises.give(self.lane, needs, self.owed).map(|()| None)
    }
}
