//! Numbers of texts: each used once in a job, whatever happens to this node. They are set aside on disk in blocks
//! before any of a block is used.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use tensorlink_node::Journal;
use tensorlink_node::journal::JournalError;
use tensorlink_types::JobId;
use thiserror::Error;

/// Numbers set aside by one write to disk; so many at most are lost at a restart.
const BLOCK: u32 = 256;

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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Record {
    /// First number that was never set aside.
    next: u32,
}

/// The numbers of a job's texts.
#[derive(Debug)]
pub struct Numbers {
    journal: Journal,
    name: String,
    record: Record,
    next: u32,
}

impl Numbers {
    /// Goes on after the last block.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open(journal: &Journal, job: JobId) -> Result<Self, JournalError> {
        let name = format!("texts-{job}");
        let record: Record = journal.read(&name)?.unwrap_or_default();
        Ok(Self { journal: journal.clone(), name, record, next: record.next })
    }

    /// The next `count` numbers, one after another.
    ///
    /// # Errors
    /// [`NumberError`].
    pub fn take(&mut self, count: u32) -> Result<Range<u32>, NumberError> {
        let first = self.next;
        let end = first.checked_add(count).ok_or(NumberError::Exhausted)?;
        if end > self.record.next {
            let record = Record { next: end.checked_add(BLOCK).ok_or(NumberError::Exhausted)? };
            self.journal.write(&self.name, &record)?;
            self.record = record;
        }
        self.next = end;
        Ok(first..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_used_twice() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let mut numbers = Numbers::open(&journal, JobId(1)).unwrap();
        assert_eq!(numbers.take(2).unwrap(), 0..2);
        assert_eq!(numbers.take(BLOCK).unwrap(), 2..BLOCK + 2);
        let mut again = Numbers::open(&journal, JobId(1)).unwrap();
        assert!(again.take(1).unwrap().start >= BLOCK + 2);
        assert_eq!(Numbers::open(&journal, JobId(11)).unwrap().take(1).unwrap(), 0..1);
        assert!(matches!(again.take(u32::MAX), Err(NumberError::Exhausted)));
    }
}
