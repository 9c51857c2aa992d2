//! Audits that are done, so that a restart does not repeat them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use tensorlink_node::Journal;
use tensorlink_node::journal::JournalError;
use tensorlink_types::ClaimId;

/// Name of the record on disk.
const NAME: &str = "audits";
/// Finished audits remembered on disk.
const REMEMBERED: usize = 4096;

/// As they are on disk.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Record {
    /// The latest last.
    claims: VecDeque<ClaimId>,
}

/// The claims that were audited.
#[derive(Debug)]
pub(crate) struct Done {
    journal: Journal,
    record: Record,
}

impl Done {
    /// Reads what was done before.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn open(journal: Journal) -> Result<Self, JournalError> {
        let record = journal.read(NAME)?.unwrap_or_default();
        Ok(Self { journal, record })
    }

    /// Remembers a claim.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn add(&mut self, claim: ClaimId) -> Result<(), JournalError> {
        if self.record.claims.len() >= REMEMBERED {
            self.record.claims.pop_front();
        }
        self.record.claims.push_back(claim);
        self.journal.write(NAME, &self.record)
    }

    /// Whether a claim was audited.
    pub(crate) fn has(&self, claim: ClaimId) -> bool {
        self.record.claims.contains(&claim)
    }
}
