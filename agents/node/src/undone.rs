//! What a role has written down of events is taken back once a reorganisation has undone some of them, also by a
//! process that was killed before it came to that: it compares how often events were taken back with how often it did
//! the same.

use crate::Journal;
use crate::journal::JournalError;

/// Has a role take back what it wrote down, unless it did since events were taken back for the last of `times`.
///
/// # Errors
/// When the journal fails; it is tried again at the next start, then.
pub async fn take_back(
    journal: &Journal,
    role: &str,
    times: u64,
    take_back: impl Future<Output = Result<(), JournalError>>,
) -> Result<(), JournalError> {
    let name = format!("undone-{role}");
    if journal.read::<u64>(&name)?.unwrap_or_default() == times {
        return Ok(());
    }
    take_back.await?;
    journal.write(&name, &times)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn each_role_takes_back_once_whenever_something_was_undone() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let taken = Cell::new(0);
        let take = async |role, times, fails| {
            let taking = async {
                taken.set(taken.get() + 1);
                if fails { journal.read::<()>("undone-other").map(|_| ()) } else { Ok(()) }
            };
            take_back(&journal, role, times, taking).await
        };
        journal.write("undone-other", &2).unwrap();
        take("worker", 0, false).await.unwrap();
        assert_eq!(taken.get(), 0, "nothing was undone");
        take("worker", 1, true).await.unwrap_err();
        for _ in 0..2 {
            take("worker", 1, false).await.unwrap();
        }
        assert_eq!(taken.get(), 2, "again where it failed, and then no more");
        take("keeper", 1, false).await.unwrap();
        // The file of events was moved away: what came of it is not known to be right.
        take("worker", 0, false).await.unwrap();
        assert_eq!(taken.get(), 4);
    }
}
