//! `tensorlink key`.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use tensorlink_chain::keystore::FIRST_ACCOUNT;
use tensorlink_types::Address;

use crate::config::Config;
use crate::{keys, output};

#[derive(Subcommand, Debug)]
pub enum KeyCommand {
    /// Create a key in an encrypted keystore file.
    New {
        /// Where to write it [default: key.json in the data folder].
        path: Option<PathBuf>,
    },
    /// Take over a key: from a keystore file of geth or Foundry, which keeps its password, or from 64 hex digits or the
    /// words of a wallet, in a file or typed.
    #[command(after_help = "\
Examples:
  tensorlink key import ~/.foundry/keystores/alice
  tensorlink key import words.txt --derivation \"m/44'/60'/0'/0/1\"
  tensorlink key import                     asks for digits or words, and does not show them")]
    Import {
        /// Where it is [default: it is asked for, or read from the standard input].
        from: Option<PathBuf>,
        /// Where to write it [default: key.json in the data folder].
        #[arg(long, value_name = "PATH")]
        to: Option<PathBuf>,
        /// Which key of the words (BIP-32).
        #[arg(long, value_name = "PATH", default_value = FIRST_ACCOUNT)]
        derivation: String,
    },
    /// Write the configured key to a file that nobody else may read, as 64 hex digits, not encrypted. Geth and Foundry
    /// read the keystore file as it is.
    Export {
        /// A new file.
        to: PathBuf,
    },
    /// Print the address of the configured key.
    Address,
}

#[derive(Serialize)]
struct Shown {
    address: Address,
}

/// Creates, takes over, gives away or shows the node's key.
pub fn run(config: &Config, command: KeyCommand) -> Result<()> {
    let or_default = |path: Option<PathBuf>| path.unwrap_or_else(|| keys::default_path(config));
    let identity = match command {
        KeyCommand::New { path } => keys::create(config, &or_default(path))?,
        KeyCommand::Import { from, to, derivation } => {
            keys::import(config, from.as_deref(), (&or_default(to), &derivation))?
        }
        KeyCommand::Export { to } => keys::export(config, &to)?,
        KeyCommand::Address => keys::load(config)?,
    };
    let shown = Shown { address: identity.address() };
    output::print(config.json, &shown, || shown.address.to_string())
}
