//! `tensorlink model`.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

mod eval;
mod file;
mod folder;
mod import;
mod merge;
mod quantize;
pub mod sample;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Subcommand;
use tensorlink_folder::may_be_model;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::quantized::Quantising;

#[derive(Subcommand, Debug)]
pub enum ModelCommand {
    /// Show layers, parameters, and memory per stage.
    Inspect {
        /// Folder of a pretrained transformer, as Hugging Face publishes it or quantised; a .gguf file; or a model file
        /// (JSON).
        model: PathBuf,
        /// With a model file: training data, to know the input width and the classes.
        #[arg(long, value_name = "FILE")]
        data: Option<PathBuf>,
        /// Pipeline stages.
        #[arg(long, default_value_t = 1)]
        stages: u16,
    },
    /// Check every part of a pretrained transformer, all values among them, and say all that is wrong with it.
    #[command(after_help = "Example:\n  tensorlink model import ~/Downloads/all-MiniLM-L6-v2 --out ./all-MiniLM-L6-v2")]
    Import {
        /// Folder of the transformer, as Hugging Face publishes it, or a .gguf file.
        source: PathBuf,
        /// New folder for a copy of what is used of it: no pickles, no scripts. Of a .gguf file it is the folder that
        /// says the same, with 32-bit floats.
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        /// Pipeline stages to show.
        #[arg(long, default_value_t = 1)]
        stages: u16,
    },
    /// Add adapters (LoRA) to a model's weights, and write the sum to a new folder.
    #[command(
        after_help = "Example:\n  tensorlink model merge ./SmolLM2-135M --adapters ./psalms --out ./SmolLM2-psalms"
    )]
    Merge {
        /// Folder of the model, with floats, or a .gguf file.
        model: PathBuf,
        /// Folder with the adapters, as Hugging Face's PEFT has them.
        #[arg(long, value_name = "FOLDER")]
        adapters: PathBuf,
        /// New folder for the model with its adapters added in.
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
    },
    /// Continue a text, in exact integers on this machine, and print it as it comes.
    #[command(after_help = "\
Examples:
  tensorlink model sample ./king-james --prompt \"In the beginning\" --tokens 200
  tensorlink model sample ./king-james --prompt \"And God said\" --temperature 0")]
    Sample(sample::SampleArgs),
    /// Put a pretrained transformer into integers once, for serve, job serve and eval, which then need no floats.
    #[command(after_help = "\
Example:
  tensorlink model quantize ./all-MiniLM-L6-v2 --out ./MiniLM-exact
  tensorlink serve ./MiniLM-exact")]
    Quantize {
        /// Folder of the transformer, as Hugging Face publishes it, or a .gguf file.
        model: PathBuf,
        /// New folder for the integers, the tokenizer, the configuration and the chat template.
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
        #[command(flatten)]
        how: Quantising,
        /// Device to calibrate on: cpu, cuda or cuda:N [default: cuda if there is one].
        #[arg(long, env = "TENSORLINK_DEVICE")]
        device: Option<String>,
    },
    /// Compare a transformer in integers with its floats.
    #[command(after_help = "\
Examples:
  tensorlink model eval ./all-MiniLM-L6-v2
  tensorlink model eval ./MiniLM-exact --against ./all-MiniLM-L6-v2")]
    Eval(eval::EvalArgs),
}

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
