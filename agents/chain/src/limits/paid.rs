//! What was paid for gas, by the hour, in memory and in a file that several processes of a node share.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tensorlink_node::ports::ChainError;
use tensorlink_types::U256;

/// Seconds.
pub(super) const HOUR: u64 = 3_600;
/// Hours that a budget is for.
const DAY: u64 = 24;

/// Wei by the hour, hours since 1970 by the chain's clock.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Paid(BTreeMap<u64, U256>);

impl Paid {
    /// Of the last 24 hours; forgets what is older, and what a clock that was wrong has put off: blocks' times differ
    /// by less than an hour.
    pub(super) fn today(&mut self, now: u64) -> U256 {
        let hour = now / HOUR;
        let day = hour.saturating_sub(DAY - 1)..=hour.saturating_add(1);
        self.0.retain(|hour, _| day.contains(hour));
        self.0.values().fold(U256::ZERO, |sum, paid| sum.saturating_add(*paid))
    }

    /// Takes in what another process of this node has written down.
    pub(super) fn merge(&mut self, other: &Self) {
        for (hour, paid) in &other.0 {
            let of_hour = self.0.entry(*hour).or_default();
            *of_hour = (*of_hour).max(*paid);
        }
    }

    /// Adds what was paid now.
    pub(super) fn add(&mut self, fee: U256, now: u64) {
        let of_hour = self.0.entry(now / HOUR).or_default();
        *of_hour = of_hour.saturating_add(fee);
        self.today(now);
    }

    /// Adds what was paid now, to what the file says as well.
    ///
    /// # Errors
    /// When the disk fails; it is added in memory all the same.
    pub(super) fn add_to(&mut self, path: &Path, fee: U256, now: u64) -> io::Result<()> {
        let locked = lock(path);
        // Between the two another process would add to what this one has read.
        if let Ok(written) = Self::read(path) {
            self.merge(&written);
        }
        self.add(fee, now);
        let _lock = locked?;
        let aside = path.with_extension("tmp");
        std::fs::write(&aside, serde_json::to_vec(self)?)?;
        std::fs::rename(aside, path)
    }

    /// Reads a file; nothing was paid where there is none.
    ///
    /// # Errors
    /// [`ChainError::Unavailable`] if it cannot be read: what to do.
    pub(super) fn read(path: &Path) -> Result<Self, ChainError> {
        let unread = |why: String| {
            ChainError::Unavailable(format!(
                "{}: {why}; mend it, or remove it to begin the day's budget anew",
                path.display()
            ))
        };
        match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| unread(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(unread(error.to_string())),
        }
    }
}

/// Held while the file is read and written anew. Another file, as that one is replaced.
fn lock(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = File::options().create(true).write(true).truncate(false).open(path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}
