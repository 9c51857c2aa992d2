//! `tensorlink model`.

mod eval;
mod file;
mod folder;

use std::path::Path;

use anyhow::{Result, bail};

use crate::args::ModelCommand;
use crate::config::Config;

/// Runs a command about a model.
pub fn run(config: &Config, command: ModelCommand) -> Result<()> {
    match command {
        ModelCommand::Inspect { model, data, stages } => inspect(config, &model, data.as_deref(), stages),
        ModelCommand::Eval { model, texts, calibration, device } => {
            eval::eval(config, &model, texts.as_deref(), calibration.as_deref(), device.as_deref())
        }
    }
}

fn inspect(config: &Config, model: &Path, data: Option<&Path>, stages: u16) -> Result<()> {
    match data {
        None if model.is_dir() => folder::inspect(config, model, stages),
        Some(_) if model.is_dir() => bail!("{} is the folder of a trained model; leave out --data", model.display()),
        Some(data) => file::inspect(config, model, data, stages),
        None if !model.exists() => bail!("{} does not exist", model.display()),
        None => bail!("{} is a model file; name its training data with --data", model.display()),
    }
}
