//! The records of lanes on disk, shared between the tasks that work on them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tensorlink_node::journal::JournalError;
use tensorlink_node::{Journal, Ports, undone};
use tensorlink_types::Lane;
use tokio::sync::watch;

use super::LaneRecord;

/// The record of a lane, shared between the tasks that work on it; every change is on disk before it is visible.
#[derive(Debug)]
pub struct LaneLog {
    journal: Journal,
    record: Mutex<LaneRecord>,
    /// Counts the changes.
    version: watch::Sender<u64>,
    /// What the contract refused last: of what kind, of which interval, and by which error.
    refused: Mutex<BTreeMap<&'static str, (u32, String)>>,
}

/// Forgets what events have told of lanes of jobs that are not settled, as the chain now is, if it did not since
/// events were taken back for the last of `times`.
///
/// # Errors
/// When the journal cannot be read or written.
pub async fn take_back(ports: &Ports, times: u64) -> Result<(), JournalError> {
    let forgetting = async {
        for log in LaneLog::open_all(&ports.journal)? {
            if !ports.chain.is_known_settled(log.get().lane.job).await {
                log.update(LaneRecord::take_back)?;
            }
        }
        Ok(())
    };
    undone::take_back(&ports.journal, "lanes", times, forgetting).await
}

fn file_name(lane: Lane) -> String {
    format!("lane-{}-{}-{}", lane.job, lane.stage, lane.replica)
}

impl LaneLog {
    /// Starts the record of a newly accepted lane, or takes up the one on disk.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub fn open(journal: Journal, fresh: LaneRecord) -> Result<Self, JournalError> {
        let name = file_name(fresh.lane);
        let record = match journal.read(&name)? {
            Some(record) => record,
            None => {
                journal.write(&name, &fresh)?;
                fresh
            }
        };
        Ok(Self::of(journal, record))
    }

    fn of(journal: Journal, record: LaneRecord) -> Self {
        Self { journal, record: Mutex::new(record), version: watch::Sender::new(0), refused: Mutex::default() }
    }

    /// Tells that the contract refuses what is tried until it does not. The same is told once: while a reorganisation
    /// is made good it may be refused in every block.
    pub(crate) fn tell_refused(&self, what: &'static str, interval: u32, name: &str, arguments: &str) {
        let mut told = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (interval, name.to_owned());
        if told.get(what) == Some(&now) {
            return;
        }
        told.insert(what, now);
        let lane = self.get().lane;
        tracing::warn!(%lane, interval, %name, %arguments, "the {what} is refused; it is tried again");
    }

    /// Whether there is a record of a lane.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn is_kept(journal: &Journal, lane: Lane) -> Result<bool, JournalError> {
        Ok(journal.read::<LaneRecord>(&file_name(lane))?.is_some())
    }

    /// All lanes on disk.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn open_all(journal: &Journal) -> Result<Vec<Self>, JournalError> {
        let mut logs = Vec::new();
        for name in journal.names()?.iter().filter(|name| name.starts_with("lane-")) {
            if let Some(record) = journal.read(name)? {
                logs.push(Self::of(journal.clone(), record));
            }
        }
        Ok(logs)
    }

    /// Removes the record of a lane, if there is one.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn remove(journal: &Journal, lane: Lane) -> Result<(), JournalError> {
        journal.remove(&file_name(lane))
    }

    /// A copy of the record.
    pub fn get(&self) -> LaneRecord {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the record on disk, then in memory, and wakes who waits for it.
    ///
    /// # Errors
    /// When the journal cannot be written; the record is then unchanged.
    pub fn update(&self, change: impl FnOnce(&mut LaneRecord)) -> Result<(), JournalError> {
        {
            let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
            let mut next = record.clone();
            change(&mut next);
            if next == *record {
                return Ok(());
            }
            self.journal.write(&file_name(next.lane), &next)?;
            *record = next;
        }
        self.version.send_modify(|version| *version += 1);
        Ok(())
    }

    /// Tells of every change from now on.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}
