//! What was measured of machines, in a file of the user's cache. Nothing that is wrong with it is an error to who
//! reads: it is measured again.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tensorlink_node::Speed;
use tracing::warn;

use super::Machine;
use crate::config;

const FILE: &str = "speed.json";
const LOCK: &str = "speed.lock";
/// Machines that are remembered: those that share a home folder, and what each was before.
const MACHINES: usize = 16;
/// Bytes of a file of ours, at most.
const MOST: u64 = 64 << 10;
/// Longest wait for others that measure; then two do so at once.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// The folder of the file.
#[derive(Clone, Debug)]
pub struct Cache(PathBuf);

/// Held by who measures. It ends with the file.
pub struct Lock(#[allow(dead_code, reason = "the lock ends with the file")] File);

#[derive(Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    machine: Machine,
    speed: Speed,
}

impl Cache {
    /// In the user's folder of caches, if there is one. It need not exist.
    pub fn find() -> Option<Self> {
        config::cache().map(Self)
    }

    /// In a folder.
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.0.join(FILE)
    }

    /// What is remembered of a machine. Of a file that cannot be read it says that.
    pub fn known(&self, machine: &Machine) -> Option<Speed> {
        let entries = self.read().unwrap_or_else(|error| {
            warn!("this machine is measured again: {error:#}");
            Vec::new()
        });
        entries.into_iter().find(|entry| entry.machine == *machine).map(|entry| entry.speed)
    }

    /// Remembers a machine, in place of what was known of it. The file is there whole or not at all.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn keep(&self, machine: &Machine, speed: Speed) -> Result<()> {
        let others = self.read().unwrap_or_default().into_iter().filter(|entry| entry.machine != *machine);
        let first = Entry { machine: machine.clone(), speed };
        let entries: Vec<Entry> = std::iter::once(first).chain(others).take(MACHINES).collect();
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.0)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
            serde_json::to_writer_pretty(&mut file, &entries)?;
            file.flush()?;
            file.persist(self.path())?;
            Ok(())
        };
        write().with_context(|| format!("cannot write {}", self.path().display()))
    }

    /// Waits until nobody else measures; none where that cannot be known.
    pub fn lock(&self) -> Option<Lock> {
        let begun = Instant::now();
        fs::create_dir_all(&self.0).ok()?;
        let file = File::options().create(true).truncate(false).write(true).open(self.0.join(LOCK)).ok()?;
        while file.try_lock().is_err() {
            if begun.elapsed() >= PATIENCE {
                return None;
            }
            std::thread::sleep(LOOK);
        }
        Some(Lock(file))
    }

    fn read(&self) -> Result<Vec<Entry>> {
        let mut text = String::new();
        match File::open(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.and_then(|file| file.take(MOST).read_to_string(&mut text)),
        }
        .with_context(|| format!("cannot read {}", self.path().display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is damaged", self.path().display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(hardware: &str) -> Machine {
        Machine { version: "1".into(), engine: "cpu".into(), hardware: hardware.into() }
    }

    #[test]
    fn only_the_same_version_engine_and_hardware_are_the_same_machine() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        cache.keep(&machine("a"), Speed::LEAST).unwrap();
        assert_eq!(cache.known(&machine("a")), Some(Speed::LEAST));
        let same = machine("a");
        for other in [
            machine("b"),
            Machine { version: "2".into(), ..same.clone() },
            Machine { engine: "cpu, threads 2".into(), ..same },
        ] {
            assert_eq!(cache.known(&other), None, "{other:?}");
        }
    }

    #[test]
    fn a_damaged_file_is_as_none_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        cache.keep(&machine("a"), Speed::LEAST).unwrap();
        let whole = fs::read_to_string(cache.path()).unwrap();
        let cut = whole[..whole.len() / 2].to_owned();
        for damaged in [cut, whole.replace("1,", "0,"), "[".repeat(1 << 17), String::new()] {
            fs::write(cache.path(), &damaged).unwrap();
            assert_eq!(cache.known(&machine("a")), None, "{damaged:.40}");
            cache.keep(&machine("a"), Speed::LEAST).unwrap();
            assert_eq!(fs::read_to_string(cache.path()).unwrap(), whole);
        }
    }

    #[test]
    fn the_file_is_bounded_and_forgets_whoever_was_measured_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        for n in 0..=MACHINES {
            cache.keep(&machine(&n.to_string()), Speed::LEAST).unwrap();
        }
        let known = |n: usize| cache.known(&machine(&n.to_string())).is_some();
        assert_eq!([0, 1, MACHINES].map(known), [false, true, true]);
    }
}
