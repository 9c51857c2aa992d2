//! Files that survive a kill at any moment: written aside, synced, then renamed over the old one; or grown line by
//! line ([`lines`]). Each tells the version of its form.

pub mod lines;
mod version;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

pub use self::lines::Lines;

/// Why a record could not be kept or read.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The disk failed.
    #[error("{path}: {source}; check that the data directory is writable and has space")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not what this version writes.
    #[error("{path} is not readable by this version: {reason}; move it away to start afresh")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A newer version has written the file.
    #[error(
        "a newer version of Tensorlink has written {path} (form {version}, this one reads {known}); start that version, or name another folder by --data-dir. Nothing was changed"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version of its form.
        version: u32,
        /// The newest that is read.
        known: u32,
    },
}

/// A directory of small JSON records, each replaced as a whole.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
}

impl Journal {
    /// Opens (and creates) the directory.
    ///
    /// # Errors
    /// [`JournalError::Io`] if it cannot be created.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(|source| JournalError::Io { path: folder.clone(), source })?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Replaces a record.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the disk refuses; the old record is then still whole.
    pub fn write<T: Serialize>(&self, name: &str, record: &T) -> Result<(), JournalError> {
        let path = self.path(name);
        let fail = |source| JournalError::Io { path: path.clone(), source };
        let text =
            version::write(record).map_err(|e| JournalError::Format { path: path.clone(), reason: e.to_string() })?;
        let aside = path.with_extension("tmp");
        let mut file = File::create(&aside).map_err(fail)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(fail)?;
        fs::rename(&aside, &path).map_err(fail)?;
        sync_folder(&self.folder).map_err(fail)
    }

    /// Reads a record, if there is one.
    ///
    /// # Errors
    /// [`JournalError::Format`] if it is damaged, [`JournalError::Newer`] if it is of a newer version.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, JournalError> {
        let path = self.path(name);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(JournalError::Io { path, source }),
        };
        version::read(&path, &text).map(Some)
    }

    /// Reads a record that is no more than a memory. If it is damaged it is moved aside, and there is none.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the disk refuses, [`JournalError::Newer`] if it is of a newer version.
    pub fn read_or_move_aside<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, JournalError> {
        match self.read(name) {
            Err(JournalError::Format { path, reason }) => {
                let aside = format!("{name}-unreadable");
                tracing::warn!("{} is not readable, and is now {aside}.json: {reason}", path.display());
                self.rename(name, &aside)?;
                Ok(None)
            }
            read => read,
        }
    }

    /// Names of all records, sorted.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the directory cannot be read.
    pub fn names(&self) -> Result<Vec<String>, JournalError> {
        let fail = |source| JournalError::Io { path: self.folder.clone(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.extension().is_some_and(|e| e == "json")
                && let Some(stem) = path.file_stem().and_then(|s| s.to_str())
            {
                names.push(stem.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Gives a record another name, in place of what has that.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the disk refuses, or there is no such record.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), JournalError> {
        let path = self.path(from);
        let renamed = fs::rename(&path, self.path(to)).and_then(|()| sync_folder(&self.folder));
        renamed.map_err(|source| JournalError::Io { path, source })
    }

    /// Drops a record; no error if there is none.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the disk refuses.
    pub fn remove(&self, name: &str) -> Result<(), JournalError> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(JournalError::Io { path, source: e }),
            _ => Ok(()),
        }
    }
}

/// A rename is durable once its folder is synced.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_reads_and_lists() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.read::<u32>("a").unwrap(), None);
        journal.write("a", &1u32).unwrap();
        journal.write("a", &2u32).unwrap();
        journal.write("b", &3u32).unwrap();
        assert_eq!(journal.read::<u32>("a").unwrap(), Some(2));
        assert_eq!(journal.names().unwrap(), ["a", "b"]);
        journal.remove("a").unwrap();
        journal.remove("a").unwrap();
        assert_eq!(journal.names().unwrap(), ["b"]);
        journal.rename("b", "c").unwrap();
        assert_eq!((journal.names().unwrap(), journal.read::<u32>("c").unwrap()), (vec!["c".to_owned()], Some(3)));
        assert!(journal.rename("b", "c").is_err());
    }

    #[test]
    fn a_torn_record_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        fs::write(folder.path().join("a.json"), "{\"half\":").unwrap();
        let error = journal.read::<u32>("a").unwrap_err();
        assert!(error.to_string().contains("a.json"), "{error}");
    }

    #[test]
    fn records_of_before_are_read_and_those_of_a_newer_version_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, "[7, 340282366920938463463374607431768211455]").unwrap();
        assert_eq!(journal.read::<(u8, u128)>("a").unwrap(), Some((7, u128::MAX)));
        journal.write("a", &(8u8, u128::MAX)).unwrap();
        assert_eq!(journal.read::<(u8, u128)>("a").unwrap(), Some((8, u128::MAX)));
        assert!(fs::read_to_string(&path).unwrap().contains("\"version\": 1"));
        let newer = r#"{"version": 2, "record": {"what": "else"}}"#;
        fs::write(&path, newer).unwrap();
        let error = journal.read::<(u8, u128)>("a").unwrap_err().to_string();
        assert!(error.contains("newer version") && error.contains("--data-dir"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), newer);
    }
}
