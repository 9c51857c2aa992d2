//! What has happened so far: written line by line, told to who watches, and read again after a restart.

use std::collections::{BTreeMap, BTreeSet};

use cid::Cid;
use serde::{Deserialize, Serialize};
use tensorlink_types::Address;

use crate::class::{DeviceClass, Precision};

/// A comparison of two results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Check {
    /// Who repeated the interval; none for the user's own machine.
    pub by: Option<Address>,
    /// By what.
    pub class: DeviceClass,
    /// How far the results are apart.
    pub distance: f64,
    /// How far they may be.
    pub allowed: f64,
}

/// One line of the journal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The training began.
    Begun {
        /// CID of the initial state.
        state: String,
        /// Precision.
        precision: Precision,
    },
    /// An interval's result was taken on.
    Taken {
        /// First step.
        first: u32,
        /// Its worker; none for the user's own machine.
        worker: Option<Address>,
        /// What it says it computed by.
        class: DeviceClass,
        /// CID of the state after.
        state: String,
        /// Loss of each step.
        losses: Vec<f64>,
        /// The comparison, if it was drawn; it agreed.
        check: Option<Check>,
    },
    /// A worker gave no result, or one that was refused; another was asked.
    PassedOver {
        /// Who.
        worker: Address,
        /// First step.
        first: u32,
        /// Why.
        why: String,
    },
    /// A worker failed too often in a row, and is not asked again.
    GivenUp {
        /// Who.
        worker: Address,
    },
    /// Two results were too far apart.
    Differ {
        /// First step.
        first: u32,
        /// Whose result it was.
        worker: Address,
        /// Who repeated it.
        check: Check,
    },
    /// A worker's result is too far from the user's own: it is not asked again.
    Off {
        /// Who.
        worker: Address,
        /// First step.
        first: u32,
        /// What it says it computed by.
        class: DeviceClass,
        /// Against the user's own repetition.
        check: Check,
    },
    /// The training goes on from the last state that two machines agreed on, or from the beginning.
    Back {
        /// Steps taken by then.
        to: u32,
    },
}

/// Where the training stands: all entries, one after the other.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Progress {
    /// Steps taken, and the state after them.
    pub(super) now: (u32, Cid),
    /// The same at the last agreement, or at the beginning.
    pub(super) agreed: (u32, Cid),
    /// Workers that are not asked again.
    pub(super) out: BTreeSet<Address>,
    /// Why workers are off.
    pub(super) faults: Vec<Entry>,
    /// Loss of each step taken.
    pub(super) losses: Vec<f64>,
    /// Intervals that were taken on, and those of them that two machines agreed on; intervals that were undone count.
    pub(super) counts: (u32, u32),
    /// Intervals that each has done.
    pub(super) by: BTreeMap<Address, u32>,
    /// States that may be on disk.
    pub(super) states: BTreeSet<Cid>,
}

impl Progress {
    pub(super) fn new(start: Cid) -> Self {
        Self {
            now: (0, start),
            agreed: (0, start),
            out: BTreeSet::new(),
            faults: Vec::new(),
            losses: Vec::new(),
            counts: (0, 0),
            by: BTreeMap::new(),
            states: BTreeSet::new(),
        }
    }

    /// Takes in an entry; gives none if it does not follow from what was before.
    pub(super) fn apply(&mut self, entry: &Entry) -> Option<()> {
        match entry {
            Entry::Begun { .. } | Entry::PassedOver { .. } | Entry::Differ { .. } => {}
            Entry::Taken { first, worker, state, losses, check, .. } => {
                let state = Cid::try_from(state.as_str()).ok()?;
                let steps = u32::try_from(losses.len()).ok()?;
                if *first != self.now.0 {
                    return None;
                }
                self.now = (first.checked_add(steps)?, state);
                self.losses.extend(losses);
                self.states.insert(state);
                self.counts.0 = self.counts.0.saturating_add(1);
                if check.is_some() || worker.is_none() {
                    self.agreed = self.now;
                    self.counts.1 = self.counts.1.saturating_add(1);
                }
                if let Some(worker) = worker {
                    let done = self.by.entry(*worker).or_default();
                    *done = done.saturating_add(1);
                }
            }
            Entry::GivenUp { worker } => {
                self.out.insert(*worker);
            }
            Entry::Off { worker, .. } => {
                self.out.insert(*worker);
                self.faults.push(entry.clone());
            }
            Entry::Back { to } => {
                if *to != self.agreed.0 {
                    return None;
                }
                self.now = self.agreed;
                self.losses.truncate(*to as usize);
            }
        }
        Some(())
    }
}
