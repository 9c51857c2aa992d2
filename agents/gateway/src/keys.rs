//! API keys: kept as hashes, compared in constant time, never shown.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use rand::TryRngCore;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use thiserror::Error;
use zeroize::Zeroizing;

/// Shorter keys can be guessed.
const SHORTEST: usize = 16;
/// Most keys of a file.
const MOST: usize = 10_000;
/// Random bytes of a key that we make.
const RANDOM: usize = 32;

/// Why there are no keys.
#[derive(Debug, Error)]
pub enum KeysError {
    /// The file could not be read or written.
    #[error("cannot {what} the API keys in {}: {source}", path.display())]
    File {
        /// `read` or `write`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file without a key.
    #[error("{} holds no API key: write one a line, of at least {SHORTEST} characters", .0.display())]
    Empty(PathBuf),
    /// A file of more keys than we take.
    #[error("{} holds more than {MOST} API keys", .0.display())]
    TooMany(PathBuf),
    /// A line that is no key.
    #[error("{}, line {line}: an API key has at least {SHORTEST} visible ASCII characters and no blanks", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The system gives no random bytes.
    #[error("no random bytes for an API key: {0}")]
    Random(#[from] rand::rand_core::OsError),
}

/// The keys that open the gateway.
#[derive(Debug)]
pub struct Keys(Vec<[u8; 32]>);

impl Keys {
    /// Reads a file of keys: one a line; empty lines and those that begin with `#` do not count.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn read(path: &Path) -> Result<Self, KeysError> {
        let file = |source| KeysError::File { what: "read", path: path.to_owned(), source };
        let text = Zeroizing::new(fs::read_to_string(path).map_err(file)?);
        let mut hashes = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let key = line.trim();
            if key.is_empty() || key.starts_with('#') {
                continue;
            }
            if key.len() < SHORTEST || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(KeysError::Key { path: path.to_owned(), line: number + 1 });
            }
            hashes.push(hash(key));
        }
        match hashes.len() {
            0 => Err(KeysError::Empty(path.to_owned())),
            1..=MOST => Ok(Self(hashes)),
            _ => Err(KeysError::TooMany(path.to_owned())),
        }
    }

    /// Reads a file of keys, or makes one with a random key, for its owner's eyes only.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn read_or_create(path: &Path) -> Result<Self, KeysError> {
        let file = |source| KeysError::File { what: "write", path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(file)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(path) {
            Ok(mut created) => {
                let mut random = Zeroizing::new([0u8; RANDOM]);
                rand::rngs::OsRng.try_fill_bytes(random.as_mut())?;
                let digits = Zeroizing::new(hex::encode(random.as_ref()));
                let line = Zeroizing::new(format!("tl-{}\n", digits.as_str()));
                created.write_all(line.as_bytes()).and_then(|()| created.sync_all()).map_err(file)?;
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(file(error)),
        }
        Self::read(path)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The number of a key, from 0. Takes as long whichever it is, and if it is none.
    pub fn find(&self, presented: &str) -> Option<usize> {
        let presented = hash(presented);
        let (mut found, mut at) = (Choice::from(0), 0u64);
        for (index, known) in (0u64..).zip(&self.0) {
            let equal = presented.ct_eq(known);
            at.conditional_assign(&index, equal);
            found |= equal;
        }
        if found.into() { usize::try_from(at).ok() } else { None }
    }
}

/// Whether others than its owner may read a file; unknown where files have no modes.
pub fn readable_by_others(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn keys_are_found_by_number() {
        let (_folder, path) = write("# ours\n\nfirst-key-0123456789\r\n  second-key-0123456789\n");
        let keys = Keys::read(&path).unwrap();
        assert_eq!(keys.count(), 2);
        assert_eq!(keys.find("first-key-0123456789"), Some(0));
        assert_eq!(keys.find("second-key-0123456789"), Some(1));
        for wrong in ["", "first-key-012345678", "first-key-0123456789 ", "# ours"] {
            assert_eq!(keys.find(wrong), None);
        }
    }

    #[test]
    fn files_without_proper_keys_are_refused_without_showing_them() {
        let (_folder, path) = write("# none\n");
        assert!(matches!(Keys::read(&path), Err(KeysError::Empty(_))));
        for bad in ["short", "with blanks 0123456789", "umläute-0123456789"] {
            let (_folder, path) = write(&format!("first-key-0123456789\n{bad}\n"));
            let error = Keys::read(&path).unwrap_err();
            assert!(matches!(error, KeysError::Key { line: 2, .. }), "{error}");
            assert!(!error.to_string().contains(bad), "{error}");
        }
        assert!(matches!(Keys::read(Path::new("/nowhere/keys")), Err(KeysError::File { what: "read", .. })));
    }

    #[test]
    fn a_made_key_is_kept_and_its_owners_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data").join("gateway.key");
        let keys = Keys::read_or_create(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.trim().len(), 3 + 2 * RANDOM);
        assert_eq!(keys.find(text.trim()), Some(0));
        assert!(!readable_by_others(&path));
        // A restart leaves clients their key.
        assert_eq!(Keys::read_or_create(&path).unwrap().find(text.trim()), Some(0));
        let other = folder.path().join("other.key");
        assert_eq!(Keys::read_or_create(&other).unwrap().find(text.trim()), None);
    }
}
