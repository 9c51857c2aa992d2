//! The node's key: from an encrypted keystore file or the environment, never from a flag.

use std::env;
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use tensorlink_node::Identity;
use zeroize::Zeroizing;

use crate::config::Config;

const KEY: &str = "TENSORLINK_PRIVATE_KEY";
const PASSWORD: &str = "TENSORLINK_PASSWORD";
const PASSWORD_FILE: &str = "TENSORLINK_PASSWORD_FILE";
/// Longest password, bytes.
const LONGEST: u64 = 4_096;

/// Where a key is looked for when nothing else is said.
pub fn default_path(config: &Config) -> PathBuf {
    config.keystore.clone().unwrap_or_else(|| config.data_dir.join("key.json"))
}

/// Reads the node's key.
pub fn load(config: &Config) -> Result<Identity> {
    if let Ok(text) = env::var(KEY) {
        return parse(&Zeroizing::new(text)).with_context(|| format!("{KEY} does not hold a key"));
    }
    let path = default_path(config);
    if !path.exists() {
        bail!(
            "no key: create one with `tensorlink key new`, or name a keystore file with --keystore, or set {KEY} \
             (looked for {})",
            path.display()
        );
    }
    let secret = tensorlink_chain::keystore::decrypt(&path, password(config, "Password: ")?.as_str())
        .with_context(|| format!("cannot open {}", path.display()))?;
    Ok(Identity::new(&secret)?)
}

/// Creates a key in an encrypted keystore file; never overwrites one.
pub fn create(config: &Config, path: &Path) -> Result<Identity> {
    if path.exists() {
        bail!("{} exists; name another file", path.display());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let password = password(config, "New password: ")?;
    let secret = tensorlink_chain::keystore::create(path, password.as_str())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Identity::new(&secret)?)
}

fn parse(text: &str) -> Result<Identity> {
    let digits = text.trim().trim_start_matches("0x");
    let mut secret = Zeroizing::new([0u8; 32]);
    // The digits themselves must not show up in the message.
    hex::decode_to_slice(digits, secret.as_mut()).map_err(|_| anyhow::anyhow!("it must be 64 hex digits"))?;
    Ok(Identity::new(&secret)?)
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
        let address = parse(key).unwrap().address();
        assert_eq!(parse(&format!("0x{key}\n")).unwrap().address(), address);
        let error = format!("{:#}", parse("0xdeadbeef").unwrap_err());
        assert!(!error.contains("deadbeef"), "{error}");
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
