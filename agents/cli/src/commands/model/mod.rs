//! `tensorlink model`.

mod file;
mod folder;

use anyhow::{Result, bail};

use crate::args::ModelCommand;
use crate::config::Config;

/// Runs a command about a model.
pub fn run(config: &Config, command: ModelCommand) -> Result<()> {
    let ModelCommand::Inspect { model, data, stages } = command;
    match data {
        None if model.is_dir() => folder::inspect(config, &model, stages),
        Some(_) if model.is_dir() => bail!("{} is the folder of a trained model; leave out --data", model.display()),
        Some(data) => file::inspect(config, &model, &data, stages),
        None if !model.exists() => bail!("{} does not exist", model.display()),
        None => bail!("{} is a model file; name its training data with --data", model.display()),
    }
}
