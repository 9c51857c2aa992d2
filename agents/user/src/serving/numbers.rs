//! Numbers of texts: each used once in a job, whatever happens to this node.
//!
//! Numbers are set aside on disk in blocks before any of a block is used. After a restart those of the last block, and those that were
//! under way when it was set aside, may have reached a worker without their end being known here: they are abandoned.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tensorlink_node::Journal;
use tensorlink_node::journal::JournalError;
use tensorlink_types::JobId;
use thiserror::Error;

/// Numbers set aside by one write to disk.
const BLOCK: u32 = 64;

/// Why there is no number for a text.
#[derive(Debug, Error)]
pub enum NumberError {
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// All are used.
    #[error("the job has no numbers left for texts: post another")]
    Exhausted,
}

/// What is on disk.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Record {
    /// First number that was never set aside.
    next: u32,
    /// First number of the last block.
    block: u32,
    /// Numbers before the block that were under way when it was set aside.
    open: BTreeSet<u32>,
}

/// The numbers of a job's texts.
#[derive(Debug)]
pub struct Numbers {
    journal: Journal,
    name: String,
    record: Record,
    next: u32,
    open: BTreeSet<u32>,
}

impl Numbers {
    /// Goes on after the last block; also the numbers whose texts may not have ended.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open(journal: &Journal, job: JobId) -> Result<(Self, BTreeSet<u32>), JournalError> {
        let name = format!("serving-{job}-texts");
        let record: Record = journal.read(&name)?.unwrap_or_default();
        let mut unknown = record.open.clone();
        unknown.extend(record.block..record.next);
        let (next, open) = (record.next, BTreeSet::new());
        Ok((Self { journal: journal.clone(), name, record, next, open }, unknown))
    }

    /// The next `count` numbers, one after another.
    ///
    /// # Errors
    /// [`NumberError`].
    pub fn take(&mut self, count: u32) -> Result<Range<u32>, NumberError> {
        let first = self.next;
        let end = first.checked_add(count).ok_or(NumberError::Exhausted)?;
        if end > self.record.next {
            let next = end.checked_add(BLOCK).ok_or(NumberError::Exhausted)?;
            let record = Record { next, block: first, open: self.open.clone() };
            self.journal.write(&self.name, &record)?;
            self.record = record;
        }
        self.next = end;
        self.open.extend(first..end);
        Ok(first..end)
    }

    /// The text has ended, one way or the other.
    pub fn end(&mut self, number: u32) {
        self.open.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_used_twice_and_none_of_unknown_end_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let (mut numbers, unknown) = Numbers::open(&journal, JobId(1)).unwrap();
        assert!(unknown.is_empty());
        assert_eq!(numbers.take(2).unwrap(), 0..2);
        assert_eq!(numbers.take(3).unwrap(), 2..5);
        (1..5).for_each(|number| numbers.end(number));
        assert_eq!(numbers.take(BLOCK).unwrap(), 5..BLOCK + 5);
        let (mut numbers, unknown) = Numbers::open(&journal, JobId(1)).unwrap();
        let first = numbers.take(1).unwrap().start;
        assert!(first >= BLOCK + 5);
        assert!(unknown.contains(&0) && !unknown.contains(&4), "0 is under way, 4 has ended: {unknown:?}");
        assert!((5..BLOCK + 5).all(|number| unknown.contains(&number)));
        assert!(unknown.iter().all(|number| *number < first));
        assert!(matches!(numbers.take(u32::MAX), Err(NumberError::Exhausted)));
    }
}
