//! The node's key in an encrypted file, as every Ethereum tool writes them (Web3 Secret Storage, scrypt).

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use alloy::signers::local::{LocalSignerError, PrivateKeySigner};
use k256::elliptic_curve::rand_core::OsRng;
use thiserror::Error;
use zeroize::Zeroizing;

/// Why a keystore file was not made or opened.
#[derive(Debug, Error)]
pub enum KeystoreError {
    /// There is a file of that name. Keys are never overwritten.
    #[error("{0} exists already; choose another name")]
    Exists(PathBuf),
    /// The path has no file name, or one that is not UTF-8.
    #[error("{0} does not name a file")]
    NoFileName(PathBuf),
    /// The file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not a keystore, or not opened by this password.
    #[error("cannot open {path}: {reason}; check the password and that it is an Ethereum keystore file")]
    Locked {
        /// Which.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

/// Makes a new key, writes it to `path` encrypted by `password`, readable by the owner alone, and returns it. Blocks
/// for a moment: the password is stretched.
///
/// # Errors
/// [`KeystoreError`] if the file exists or cannot be written.
pub fn create(path: &Path, password: &str) -> Result<Zeroizing<[u8; 32]>, KeystoreError> {
    let no_name = || KeystoreError::NoFileName(path.to_owned());
    let name = path.file_name().and_then(OsStr::to_str).ok_or_else(no_name)?;
    if path.exists() {
        return Err(KeystoreError::Exists(path.to_owned()));
    }
    let file = |source| KeystoreError::File { path: path.to_owned(), source };
    // Encrypted beside the target in a folder that only we can enter, then moved: never half written, never readable.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let folder = tempfile::Builder::new().prefix(".key-").tempdir_in(parent).map_err(file)?;
    let signer = PrivateKeySigner::random();
    let secret = Zeroizing::new(signer.to_bytes().0);
    PrivateKeySigner::encrypt_keystore(folder.path(), &mut OsRng, *secret, password, Some(name))
        .map_err(|error| file(io::Error::other(error.to_string())))?;
    let fresh = folder.path().join(name);
    owner_only(&fresh).map_err(file)?;
    // A hard link fails where the target exists, which a rename would replace.
    std::fs::hard_link(&fresh, path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => KeystoreError::Exists(path.to_owned()),
        _ => file(source),
    })?;
    Ok(secret)
}

/// Opens a keystore file. Blocks for a moment, as [`create`].
///
/// # Errors
/// [`KeystoreError`] if the file cannot be read, is no keystore or has another password.
pub fn decrypt(path: &Path, password: &str) -> Result<Zeroizing<[u8; 32]>, KeystoreError> {
    std::fs::metadata(path).map_err(|source| KeystoreError::File { path: path.to_owned(), source })?;
    let locked = |error: LocalSignerError| KeystoreError::Locked { path: path.to_owned(), reason: error.to_string() };
    let signer = PrivateKeySigner::decrypt_keystore(path, password).map_err(locked)?;
    Ok(Zeroizing::new(signer.to_bytes().0))
}

#[cfg(unix)]
fn owner_only(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn owner_only(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_by_its_password_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.json");
        let secret = create(&path, "correct horse").unwrap();
        assert_eq!(decrypt(&path, "correct horse").unwrap(), secret);
        assert!(matches!(decrypt(&path, "wrong"), Err(KeystoreError::Locked { .. })));
        assert!(matches!(create(&path, "again"), Err(KeystoreError::Exists(_))));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        // Nothing but the key is left behind.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_keystore_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.json");
        assert!(matches!(decrypt(&path, ""), Err(KeystoreError::File { .. })));
        std::fs::write(&path, "{}").unwrap();
        assert!(matches!(decrypt(&path, ""), Err(KeystoreError::Locked { .. })));
        assert!(matches!(create(Path::new("/"), ""), Err(KeystoreError::NoFileName(_))));
    }
}
