//! Where the local network lies, and the lock on it.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::config;

/// Longest wait for another command that changes the network.
const PATIENCE: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(100);

/// The folder of the network.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

/// Held by the command that changes the network.
pub(super) struct Lock(#[allow(dead_code, reason = "the lock ends with the file")] File);

impl Folder {
    /// In the user's folder. It need not exist.
    pub(super) fn find() -> Result<Self> {
        let home =
            config::home().context("there is no home folder: set TENSORLINK_HOME to a folder for the network")?;
        Ok(Self(std::path::absolute(home)?.join(config::LOCALNET)))
    }

    #[cfg(test)]
    pub(super) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// What is remembered of the network.
    pub(super) fn state(&self) -> PathBuf {
        self.0.join("state.json")
    }

    /// What every other command finds.
    pub(super) fn config(&self) -> PathBuf {
        self.0.join(config::NAME)
    }

    pub(super) fn deployment(&self) -> PathBuf {
        self.0.join("deployment.toml")
    }

    /// Files of the chain.
    pub(super) fn chain(&self) -> PathBuf {
        self.0.join("chain")
    }

    /// Files of the user's own node, its key among them.
    pub(super) fn user(&self) -> PathBuf {
        self.0.join("user")
    }

    /// Files of a node or of the gateway.
    pub(super) fn node(&self, name: &str) -> PathBuf {
        self.0.join("nodes").join(name)
    }

    /// What a process has written.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.0.join("logs").join(format!("{name}.log"))
    }

    /// Makes the folder, which nobody else may enter, and waits until no other command changes the network.
    pub(super) async fn lock(&self) -> Result<Lock> {
        let started = Instant::now();
        loop {
            make(&self.0)?;
            let path = self.0.join("lock");
            let file = match File::options().create(true).truncate(false).write(true).open(&path) {
                // Another command has just removed the folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file.with_context(|| format!("cannot write {}", path.display()))?,
            };
            match file.try_lock() {
                Ok(()) if same(&file, &path) => return Ok(Lock(file)),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    ensure!(
                        started.elapsed() < PATIENCE,
                        "another `tensorlink localnet` command is at work for {} s: wait for it, or end it",
                        PATIENCE.as_secs()
                    );
                    tokio::time::sleep(LOOK).await;
                }
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", path.display()));
                }
            }
        }
    }

    /// Fails where there is no network.
    pub(super) fn must_exist(&self) -> Result<()> {
        if !self.state().exists() {
            bail!("there is no local network in {}: `tensorlink localnet up` starts one", self.0.display());
        }
        Ok(())
    }

    /// Removes all that the network wrote, and the user's folder if nothing else is in it.
    pub(super) fn remove(&self) -> Result<()> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", self.0.display()));
            }
            _ => {}
        }
        if let Some(home) = self.0.parent() {
            // It fails where something else is in it, which stays.
            let _kept = fs::remove_dir(home);
        }
        Ok(())
    }

    /// Removes all but the lock, which is held.
    pub(super) fn clear(&self) -> Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_name() == "lock" {
                continue;
            }
            let path = entry.path();
            let removed = if entry.file_type()?.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }
}

/// Makes a folder that only its owner may enter, with those that it lies in.
pub(super) fn make(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path).with_context(|| format!("cannot create {}", path.display()))
}

/// Whether the file that is open is the one that the path names: a folder that was removed meanwhile has another.
#[cfg(unix)]
fn same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let named = fs::metadata(path).map(|about| (about.dev(), about.ino())).ok();
    named.is_some() && named == file.metadata().map(|about| (about.dev(), about.ino())).ok()
}

#[cfg(not(unix))]
fn same(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_command_at_a_time_and_nothing_is_left() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::at(&home.path().join("own").join("localnet"));
        let lock = folder.lock().await.unwrap();
        let other = tokio::spawn({
            let folder = folder.clone();
            async move { folder.lock().await.map(|_| ()) }
        });
        tokio::time::sleep(3 * LOOK).await;
        assert!(!other.is_finished());
        fs::write(folder.state(), "{}").unwrap();
        make(&folder.chain()).unwrap();
        folder.clear().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the lock");
        folder.remove().unwrap();
        assert!(!home.path().join("own").exists());
        drop(lock);
        other.await.unwrap().unwrap();
        assert!(folder.path().exists(), "made anew by the other");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn others_cannot_enter() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::at(&home.path().join("localnet"));
        let _lock = folder.lock().await.unwrap();
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
