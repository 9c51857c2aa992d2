//! The node's key: from an encrypted keystore file or the environment, never from a flag.

use std::env;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tensorlink_node::Identity;
use zeroize::Zeroizing;

use crate::config::Config;

const KEY: &str = "TENSORLINK_PRIVATE_KEY";
const PASSWORD: &str = "TENSORLINK_PASSWORD";

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
    let secret = tensorlink_chain::keystore::decrypt(&path, password("Password: ")?.as_str())
        .with_context(|| format!("cannot open {}", path.display()))?;
    Ok(Identity::new(&secret)?)
}

/// Creates a key in an encrypted keystore file; never overwrites one.
pub fn create(path: &Path) -> Result<Identity> {
    if path.exists() {
        bail!("{} exists; name another file", path.display());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let password = password("New password: ")?;
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

/// The keystore's password: from the environment, else asked for without echo where there is a terminal.
fn password(prompt: &str) -> Result<Zeroizing<String>> {
    if let Ok(text) = env::var(PASSWORD) {
        return Ok(Zeroizing::new(text));
    }
    if !io::stdin().is_terminal() {
        bail!("no password: set {PASSWORD}, or run on a terminal to be asked");
    }
    Ok(Zeroizing::new(rpassword::prompt_password(prompt)?))
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
}
