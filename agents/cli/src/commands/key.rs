//! `tensorlink key`.

use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use tensorlink_types::Address;

use crate::args::KeyCommand;
use crate::config::Config;
use crate::{keys, output};

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
