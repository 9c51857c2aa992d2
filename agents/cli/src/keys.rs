//! The node's key: from an encrypted keystore file or the environment, never from a flag.

use std::env;
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use tensorlink_chain::keystore::{self, Stretch};
use tensorlink_node::Identity;
use zeroize::Zeroizing;

use crate::config::Config;

const KEY: &str = "TENSORLINK_PRIVATE_KEY";
const PASSWORD: &str = "TENSORLINK_PASSWORD";
const PASSWORD_FILE: &str = "TENSORLINK_PASSWORD_FILE";
/// Longest password, bytes.
const LONGEST: u64 = 4_096;
/// Longest file with a key in it, bytes.
const LARGEST: u64 = 1 << 16;
const EMPTY: &str = "an empty password protects nothing: choose another";

/// Where a key is looked for when nothing else is said.
pub fn default_path(config: &Config) -> PathBuf {
    config.keystore.clone().unwrap_or_else(|| config.data_dir.join("key.json"))
}

/// Reads the node's key.
pub fn load(config: &Config) -> Result<Identity> {
    if let Ok(text) = env::var(KEY) {
        let secret = parse(&Zeroizing::new(text));
        let identity = secret.and_then(|secret| Ok(Identity::new(&secret)?));
        return identity.with_context(|| format!("{KEY} does not hold a key"));
    }
    let path = default_path(config);
    if !path.exists() {
        bail!(
            "no key: create one with `tensorlink key new`, or name a keystore file with --keystore, or set {KEY} \
             (looked for {})",
            path.display()
        );
    }
    let secret = keystore::decrypt(&path, &password(config, "Password: ")?)?;
    Ok(Identity::new(&secret)?)
}

/// Creates a key in an encrypted keystore file; never overwrites one.
pub fn create(config: &Config, path: &Path) -> Result<Identity> {
    make_room(path)?;
    let password = new_password(config)?;
    let secret = keystore::create(path, &password, Stretch::Standard)?;
    Ok(Identity::new(&secret)?)
}

/// Takes over a key, into an encrypted keystore file: from another such file, which keeps its password, or from digits
/// or words; never overwrites one.
pub fn import(config: &Config, from: Option<&Path>, (path, derivation): (&Path, &str)) -> Result<Identity> {
    make_room(path)?;
    let text = match from {
        Some(from) => told(File::open(from), &from.display().to_string())?,
        None if io::stdin().is_terminal() => Zeroizing::new(rpassword::prompt_password("The key's digits or words: ")?),
        None => told(Ok(io::stdin()), "the standard input")?,
    };
    let (secret, password) = match (from, text.trim_start().starts_with('{')) {
        (Some(from), true) => {
            let password = password(config, &format!("Password of {}: ", from.display()))?;
            (keystore::decrypt(from, &password)?, password)
        }
        (None, true) => bail!("name the keystore file: `tensorlink key import FILE`"),
        (_, false) if text.split_whitespace().nth(1).is_some() => {
            (keystore::from_words(&text, derivation)?, new_password(config)?)
        }
        (_, false) => (parse(&text)?, new_password(config)?),
    };
    let identity = Identity::new(&secret)?;
    ensure!(!password.is_empty(), "{EMPTY}");
    keystore::store(path, &secret, &password, Stretch::Standard)?;
    Ok(identity)
}

/// Writes the node's key to a new file that nobody else may read.
pub fn export(config: &Config, to: &Path) -> Result<Identity> {
    let identity = load(config)?;
    let digits = Zeroizing::new(hex::encode(identity.secret()));
    write_secret(to, &Zeroizing::new(format!("0x{}", digits.as_str())))?;
    Ok(identity)
}

/// Writes a line to a new file that nobody but its owner may read.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let written = options.open(path).and_then(|mut file| {
        writeln!(file, "{text}")?;
        file.sync_all()
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Makes sure that a key can be written, before anybody types a password.
fn make_room(path: &Path) -> Result<()> {
    ensure!(!path.exists(), "{} exists; name another file", path.display());
    match path.parent() {
        Some(folder) => std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display())),
        None => Ok(()),
    }
}

/// A secret that a file holds.
fn told(file: io::Result<impl Read>, name: &str) -> Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    let read = file.and_then(|file| file.take(LARGEST).read_to_string(&mut text));
    read.with_context(|| format!("cannot read a key from {name}"))?;
    ensure!(!text.trim().is_empty(), "{name} holds no key");
    Ok(text)
}

fn parse(text: &str) -> Result<Zeroizing<[u8; 32]>> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let mut secret = Zeroizing::new([0u8; 32]);
    // The digits themselves must not show up in the message.
    hex::decode_to_slice(digits, secret.as_mut()).map_err(|_| anyhow::anyhow!("it must be 64 hex digits"))?;
    Ok(secret)
}

/// The password of a key that is to be written: not an empty one, and typed twice where it is typed.
fn new_password(config: &Config) -> Result<Zeroizing<String>> {
    let typed = !is_told(config) && io::stdin().is_terminal();
    let password = password(config, "New password: ")?;
    ensure!(!password.is_empty(), "{EMPTY}");
    if typed {
        let again = Zeroizing::new(rpassword::prompt_password("Once more: ")?);
        ensure!(again == password, "the two passwords differ: nothing was written");
    }
    Ok(password)
}

/// Whether a password need not be typed.
fn is_told(config: &Config) -> bool {
    [PASSWORD, PASSWORD_FILE].iter().any(|name| env::var_os(name).is_some()) || config.password_file.is_some()
}

/// The keystore's password: from the environment, from a file, else asked for without echo where there is a terminal.
fn password(config: &Config, prompt: &str) -> Result<Zeroizing<String>> {
    if let Ok(text) = env::var(PASSWORD) {
        return Ok(Zeroizing::new(text));
    }
    let file = env::var_os(PASSWORD_FILE).map(PathBuf::from).or_else(|| config.password_file.clone());
    if let Some(path) = file {
        return password_in(&path);
    }
    if !io::stdin().is_terminal() {
        bail!("no password: set {PASSWORD} or {PASSWORD_FILE}, or run on a terminal to be asked");
    }
    Ok(Zeroizing::new(rpassword::prompt_password(prompt)?))
}

/// The password in a file: its first line. Refused where others may read it.
fn password_in(path: &Path) -> Result<Zeroizing<String>> {
    let mut file = File::open(path).with_context(|| format!("cannot read the password file {}", path.display()))?;
    let about = file.metadata()?;
    ensure!(about.is_file(), "the password file {} is not a file", path.display());
    ensure!(!others_may_read(&about), "others may read the password file {0}: chmod 600 {0}", path.display());
    ensure!(about.len() <= LONGEST, "the password file {} holds {} bytes", path.display(), about.len());
    let mut text = Zeroizing::new(String::new());
    file.read_to_string(&mut text).with_context(|| format!("the password file {} is not text", path.display()))?;
    let line = text.lines().next().unwrap_or_default();
    ensure!(!line.is_empty(), "the password file {} is empty", path.display());
    Ok(Zeroizing::new(line.to_owned()))
}

#[cfg(unix)]
fn others_may_read(about: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    about.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn others_may_read(_: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_with_or_without_prefix_and_never_shown() {
        let key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
        for text in [format!("0x{key}\n"), format!("0X{key}"), key.to_uppercase()] {
            assert_eq!(parse(&text).unwrap(), parse(key).unwrap());
        }
        for wrong in ["0xdeadbeef", &format!("0x0x{key}"), &key[2..]] {
            let error = format!("{:#}", parse(wrong).unwrap_err());
            assert!(!error.contains("deadbeef") && !error.contains(&key[2..]), "{error}");
        }
    }
    #[cfg(unix)]
    #[test]
    fn a_password_file_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let write = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            password_in(&path)
        };
        assert_eq!(write("correct horse\n", 0o600).unwrap().as_str(), "correct horse");
        for mode in [0o640, 0o604, 0o644] {
            let error = write("correct horse\n", mode).unwrap_err().to_string();
            assert!(error.contains("chmod 600") && !error.contains("correct"), "{error}");
        }
        assert!(write("", 0o600).unwrap_err().to_string().contains("empty"));
        assert!(password_in(folder.path()).is_err());
        assert!(password_in(&folder.path().join("absent")).unwrap_err().to_string().contains("absent"));
    }
}
