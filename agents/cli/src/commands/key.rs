//! `tensorlink key`.

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

/// Creates or shows the node's key.
pub fn run(config: &Config, command: KeyCommand) -> Result<()> {
    let identity = match command {
        KeyCommand::New { path } => keys::create(config, &path.unwrap_or_else(|| keys::default_path(config)))?,
        KeyCommand::Address => keys::load(config)?,
    };
    let shown = Shown { address: identity.address() };
    output::print(config.json, &shown, || shown.address.to_string())
}
