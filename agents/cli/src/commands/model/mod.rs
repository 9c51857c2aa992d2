//! `tensorlink model`.

mod eval;
mod file;
mod folder;
mod import;
mod merge;
mod quantize;
pub mod sample;

use std::path::Path;

use anyhow::{Result, bail};
use tokio_util::sync::CancellationToken;

use crate::args::ModelCommand;
use crate::config::Config;
use tensorlink_folder::may_be_model;

/// Runs a command about a model.
pub async fn run(config: &Config, command: ModelCommand, shutdown: CancellationToken) -> Result<()> {
    match command {
        ModelCommand::Inspect { model, data, stages } => inspect(config, &model, data.as_deref(), stages),
        ModelCommand::Import { source, out, stages } => import::import(config, &source, out.as_deref(), stages),
        ModelCommand::Merge { model, adapters, out } => merge::merge(config, &model, &adapters, &out),
        ModelCommand::Quantize { model, out, how, device } => {
            quantize::quantize(config, &model, &out, &how, device.as_deref())
        }
        ModelCommand::Sample(args) => sample::sample(config, args, shutdown).await,
        ModelCommand::Eval(args) => eval::eval(config, &args),
    }
}

fn inspect(config: &Config, model: &Path, data: Option<&Path>, stages: u16) -> Result<()> {
    match data {
        // What is not there is refused as it is where models are served.
        None if may_be_model(model) || !model.exists() => folder::inspect(config, model, stages),
        Some(_) if may_be_model(model) => bail!("{} holds a trained model; leave out --data", model.display()),
        Some(data) => file::inspect(config, model, data, stages),
        None => bail!("{} is a model file; name its training data with --data", model.display()),
    }
}
