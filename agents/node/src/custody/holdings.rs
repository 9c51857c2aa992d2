//! The record of what is kept for others.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tensorlink_types::abi::Claim;

use crate::Journal;
use crate::journal::JournalError;

/// Name of the record on disk.
const FILE: &str = "holdings";

/// A state kept for another.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Holding {
    /// What it is the end of.
    pub(super) claim: Claim,
    /// CID of its file.
    pub(super) state: String,
    /// CID of its job's manifest.
    pub(super) manifest: String,
    /// Whether its job is over.
    pub(super) over: bool,
    /// Whether it is here until a newer one of its lane is, and was not attested.
    #[serde(default)]
    pub(super) mirrored: bool,
}

/// All of it; on disk before anybody is told.
pub(super) struct Holdings {
    journal: Journal,
    held: Mutex<Vec<Holding>>,
}

impl Holdings {
    /// Takes up what is on disk.
    ///
    /// # Errors
    /// [`JournalError`] if it cannot be read.
    pub(super) fn open(journal: Journal) -> Result<Self, JournalError> {
        let held = Mutex::new(journal.read(FILE)?.unwrap_or_default());
        Ok(Self { journal, held })
    }

    /// What is on record, for as long as nobody is to change it.
    pub(super) fn all(&self) -> MutexGuard<'_, Vec<Holding>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the record on disk, then in memory.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails.
    pub(super) fn update(&self, change: impl FnOnce(&mut Vec<Holding>)) -> Result<(), JournalError> {
        let mut held = self.all();
        let mut next = held.clone();
        change(&mut next);
        if next != *held {
            self.journal.write(FILE, &next)?;
            *held = next;
        }
        Ok(())
    }
}
