//! The node's key in an encrypted file, as every Ethereum tool writes them (Web3 Secret Storage, version 3, scrypt).

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use aes::Aes128;
use aes::cipher::{KeyIvInit, StreamCipher};
use alloy::primitives::{hex, keccak256};
use alloy::signers::local::coins_bip39::English;
use alloy::signers::local::{LocalSignerError, MnemonicBuilder, PrivateKeySigner};
use k256::elliptic_curve::rand_core::{OsRng, RngCore};
use scrypt::Params;
use serde::Deserialize;
use serde_json::json;
use tensorlink_types::Address;
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
    /// The words are no mnemonic, or the path leads to no key.
    #[error("these words give no key: {0}")]
    Words(String),
    /// 32 bytes that are no key of the curve.
    #[error("no key: it must be between 1 and the order of secp256k1")]
    NoKey,
}

/// The path of the first account in wallets (BIP-44).
pub const FIRST_ACCOUNT: &str = "m/44'/60'/0'/0/0";
/// Bytes of a keystore file, at most; and of memory that one may ask for.
const LARGEST_FILE: u64 = 1 << 16;
const LARGEST_STRETCH: u64 = 1 << 30;
/// Scrypt's block size.
const BLOCK: u32 = 8;

/// What guessing a password costs, in scrypt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stretch {
    /// As geth does by default: 256 MiB, and about a second, a guess.
    Standard,
    /// As geth's `--lightkdf`: 4 MiB, and a tenth of a second. For passwords that nobody can guess, drawn and long.
    Light,
}

impl Stretch {
    /// The binary logarithm of N, and p.
    const fn parameters(self) -> (u8, u32) {
        match self {
            Self::Standard => (18, 1),
            Self::Light => (12, 6),
        }
    }
}

/// Makes a new key, and writes it as [`store`] does.
///
/// # Errors
/// As [`store`].
pub fn create(path: &Path, password: &str, stretch: Stretch) -> Result<Zeroizing<[u8; 32]>, KeystoreError> {
    let secret = Zeroizing::new(PrivateKeySigner::random().to_bytes().0);
    store(path, &secret, password, stretch)?;
    Ok(secret)
}

/// Writes a key to `path` encrypted by `password`, readable by the owner alone. Blocks for a moment: the password is
/// stretched.
///
/// # Errors
/// [`KeystoreError`] if the file exists or cannot be written, or if the secret is no key.
pub fn store(path: &Path, secret: &[u8; 32], password: &str, stretch: Stretch) -> Result<(), KeystoreError> {
    let no_name = || KeystoreError::NoFileName(path.to_owned());
    let name = path.file_name().and_then(OsStr::to_str).ok_or_else(no_name)?;
    if path.exists() {
        return Err(KeystoreError::Exists(path.to_owned()));
    }
    let text = encrypted(secret, password, stretch)?;
    let file = |source| KeystoreError::File { path: path.to_owned(), source };
    // Beside the target in a folder that only we can enter, then moved: never half written, never readable.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let folder = tempfile::Builder::new().prefix(".key-").tempdir_in(parent).map_err(file)?;
    let fresh = folder.path().join(name);
    let write = || {
        std::fs::write(&fresh, text)?;
        owner_only(&fresh)?;
        std::fs::File::open(&fresh)?.sync_all()
    };
    write().map_err(file)?;
    // A hard link fails where the target exists, which a rename would replace.
    std::fs::hard_link(&fresh, path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => KeystoreError::Exists(path.to_owned()),
        _ => file(source),
    })
}

/// A keystore file's text.
fn encrypted(secret: &[u8; 32], password: &str, stretch: Stretch) -> Result<String, KeystoreError> {
    let address = address_of(secret)?;
    let (mut salt, mut iv, mut id) = ([0; 32], [0; 16], [0; 16]);
    for random in [salt.as_mut_slice(), &mut iv, &mut id] {
        OsRng.fill_bytes(random);
    }
    let (log_n, p) = stretch.parameters();
    let key = stretched(password, &salt, (log_n, BLOCK, p));
    let mut ciphertext = *secret;
    ctr::Ctr128BE::<Aes128>::new((&key[..16]).into(), (&iv).into()).apply_keystream(&mut ciphertext);
    let keystore = json!({
        "version": 3,
        "id": uuid(id),
        "address": hex::encode(address),
        "crypto": {
            "cipher": "aes-128-ctr",
            "cipherparams": { "iv": hex::encode(iv) },
            "ciphertext": hex::encode(ciphertext),
            "kdf": "scrypt",
            "kdfparams": { "dklen": key.len(), "n": 1u64 << log_n, "p": p, "r": BLOCK, "salt": hex::encode(salt) },
            "mac": hex::encode(keccak256([&key[16..], &ciphertext].concat())),
        },
    });
    Ok(keystore.to_string())
}

fn stretched(password: &str, salt: &[u8], (log_n, r, p): (u8, u32, u32)) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    // Constants of ours, which scrypt allows, and 32 bytes.
    let parameters = Params::new(log_n, r, p).expect("parameters that scrypt allows");
    scrypt::scrypt(password.as_bytes(), salt, &parameters, key.as_mut()).expect("a length that scrypt allows");
    key
}

/// Random bytes as a UUID of version 4 (RFC 9562).
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let digits = hex::encode(bytes);
    let (a, rest) = digits.split_at(8);
    let parts = [&rest[..4], &rest[4..8], &rest[8..12], &rest[12..]];
    format!("{a}-{}", parts.join("-"))
}

/// The account of a key.
///
/// # Errors
/// [`KeystoreError::NoKey`].
pub fn address_of(secret: &[u8; 32]) -> Result<Address, KeystoreError> {
    PrivateKeySigner::from_slice(secret).map(|signer| signer.address()).map_err(|_| KeystoreError::NoKey)
}

/// The key that words stand for (BIP-39, in English), at a path of derivation (BIP-32).
///
/// # Errors
/// [`KeystoreError::Words`].
pub fn from_words(words: &str, path: &str) -> Result<Zeroizing<[u8; 32]>, KeystoreError> {
    let failed = |error: LocalSignerError| KeystoreError::Words(error.to_string());
    let words = Zeroizing::new(words.split_whitespace().collect::<Vec<_>>().join(" "));
    let builder = MnemonicBuilder::<English>::default().phrase(words.as_str());
    let signer = builder.derivation_path(path).map_err(failed)?.build().map_err(failed)?;
    Ok(Zeroizing::new(signer.to_bytes().0))
}

/// What a file asks of who opens it.
#[derive(Deserialize)]
struct Asks {
    crypto: Crypto,
}

#[derive(Deserialize)]
struct Crypto {
    kdfparams: KdfParams,
}

/// Those of scrypt; zeros of others, which take no memory.
#[derive(Deserialize)]
struct KdfParams {
    #[serde(default)]
    n: u64,
    #[serde(default)]
    r: u64,
}

/// Opens a keystore file. Blocks for a moment, as [`store`].
///
/// # Errors
/// [`KeystoreError`] if the file cannot be read, is no keystore, has another password, or asks for more than a
/// gigabyte of memory.
pub fn decrypt(path: &Path, password: &str) -> Result<Zeroizing<[u8; 32]>, KeystoreError> {
    let file = |source| KeystoreError::File { path: path.to_owned(), source };
    let locked = |reason: String| KeystoreError::Locked { path: path.to_owned(), reason };
    if std::fs::metadata(path).map_err(file)?.len() > LARGEST_FILE {
        return Err(locked("it is too large".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(file)?;
    let Asks { crypto: Crypto { kdfparams: KdfParams { n, r } } } =
        serde_json::from_str(&text).map_err(|error| locked(error.to_string()))?;
    if n.saturating_mul(r).saturating_mul(128) > LARGEST_STRETCH {
        return Err(locked("it asks for more than a gigabyte of memory".to_owned()));
    }
    let signer = PrivateKeySigner::decrypt_keystore(path, password).map_err(|error| locked(error.to_string()))?;
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
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_key_comes_back_by_its_password_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.json");
        let secret = create(&path, "correct horse", Stretch::Light).unwrap();
        assert_eq!(decrypt(&path, "correct horse").unwrap(), secret);
        assert!(matches!(decrypt(&path, "wrong"), Err(KeystoreError::Locked { .. })));
        assert!(matches!(create(&path, "again", Stretch::Light), Err(KeystoreError::Exists(_))));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        // Nothing but the key is left behind.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// What geth reads: a UUID, the address in lower case, its own parameters.
    #[test]
    fn a_file_is_as_geth_writes_it() {
        let text = encrypted(&[7; 32], "password", Stretch::Standard).unwrap();
        let keystore: Value = serde_json::from_str(&text).unwrap();
        let (kdf, id) = (&keystore["crypto"]["kdfparams"], keystore["id"].as_str().unwrap());
        assert_eq!(
            (&kdf["n"], &kdf["r"], &kdf["p"], &kdf["dklen"]),
            (&json!(262_144), &json!(8), &json!(1), &json!(32))
        );
        assert_eq!(keystore["address"], hex::encode(address_of(&[7; 32]).unwrap()));
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!((&id[14..15], "89ab".contains(&id[19..20])), ("4", true), "{id}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("UTC--2026-11-27T00-00-00.0Z--of-geth");
        std::fs::write(&path, text).unwrap();
        assert_eq!(*decrypt(&path, "password").unwrap(), [7; 32]);
    }

    #[test]
    fn words_give_the_keys_of_wallets() {
        let words = "test test test test test test test test test test test junk";
        let of = |words: &str, path: &str| from_words(words, path).and_then(|secret| address_of(&secret));
        let first: Address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".parse().unwrap();
        let second: Address = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().unwrap();
        assert_eq!(of(&words.replace(' ', "\n  "), FIRST_ACCOUNT).unwrap(), first);
        assert_eq!(of(words, "m/44'/60'/0'/0/1").unwrap(), second);
        for (words, path) in
            [("test junk", FIRST_ACCOUNT), (&words.replace("junk", "test"), FIRST_ACCOUNT), (words, "m/x")]
        {
            assert!(matches!(of(words, path), Err(KeystoreError::Words(_))), "{words} {path}");
        }
    }

    #[test]
    fn what_is_no_keystore_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.json");
        assert!(matches!(decrypt(&path, ""), Err(KeystoreError::File { .. })));
        let greedy = encrypted(&[7; 32], "", Stretch::Light).unwrap().replace("4096", "1073741824");
        for text in ["{}", "", &greedy, &" ".repeat(1 << 17)] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(decrypt(&path, ""), Err(KeystoreError::Locked { .. })));
        }
        assert!(matches!(create(Path::new("/"), "", Stretch::Light), Err(KeystoreError::NoFileName(_))));
        let zero = store(&folder.path().join("other"), &[0; 32], "", Stretch::Light);
        assert!(matches!(zero, Err(KeystoreError::NoKey)));
    }
}
