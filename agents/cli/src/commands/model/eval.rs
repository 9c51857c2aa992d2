//! `tensorlink model eval`.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use tensorlink_folder::distance::Choice;
use tensorlink_folder::texts::{known, measured_on};
use tensorlink_folder::{Distance, ModelFolder, Tolerance};
use tensorlink_model::Setting;

use crate::config::Config;
use crate::live::say;
use crate::output;
use crate::quantized::{Quantising, beside, loss, prepare_on};

#[derive(Args, Debug)]
pub struct EvalArgs {
    /// Folder of the transformer, as Hugging Face publishes it or quantised, or a .gguf file.
    pub model: PathBuf,
    /// With a quantised folder: the folder or .gguf file that it was made of, for the floats.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["calibration", "setting"])]
    pub against: Option<PathBuf>,
    /// Texts to measure on, one a line [default: every fourth that the folder brings along, else 200 of ours].
    #[arg(long, value_name = "FILE")]
    pub texts: Option<PathBuf>,
    #[command(flatten)]
    pub how: Quantising,
    /// Device: cpu, cuda or cuda:N [default: cuda if there is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

/// What is printed.
#[derive(Serialize)]
struct Shown<'a> {
    setting: Setting,
    #[serde(flatten)]
    distance: &'a Distance,
    /// What is beyond what is served without `--accept-loss`.
    exceeds: Vec<String>,
}

/// Compares a folder's model in integers with its floats: of the same folder, or of the one it was made of.
pub(super) fn eval(config: &Config, args: &EvalArgs) -> Result<()> {
    let folder = ModelFolder::open(&args.model)?;
    let measured = measured_on(&folder, args.texts.as_deref())?;
    let start = Instant::now();
    let (prepared, engine) = match (folder.integers(), &args.against) {
        (Some(integers), Some(against)) => {
            let against = ModelFolder::open(against)?;
            let engine = crate::device::open(args.device.as_deref())?;
            (beside(&folder, integers, &against, engine.device())?, engine)
        }
        (Some(_), None) => {
            bail!("{} holds integers only: name the folder it was made of with --against", args.model.display())
        }
        (None, Some(_)) => bail!("{} has floats of its own: leave out --against", args.model.display()),
        (None, None) => {
            let known = known(&folder, args.how.calibration.as_deref())?;
            let engine = crate::device::open(args.device.as_deref())?;
            (prepare_on(&folder, &known, args.how.setting.unwrap_or_default(), engine.device())?, engine)
        }
    };
    tracing::info!(seconds = start.elapsed().as_secs_f64(), "in integers");
    say!("comparing {} texts ...", measured.len());
    let distance = prepared.distance(engine, &measured)?;
    let (setting, bytes) = (prepared.exact.setting(), prepared.exact.bytes());
    if let Some(warning) = loss::warning(&distance, setting) {
        say!("\nWARNING: {warning}.\n");
    }
    let exceeds = Tolerance::DEFAULT.exceeded_by(&distance).iter().map(ToString::to_string).collect();
    let shown = Shown { setting, distance: &distance, exceeds };
    output::print(config.json, &shown, || text(&shown, bytes))
}

fn text(shown: &Shown<'_>, bytes: u64) -> String {
    let d = shown.distance;
    let choice = format!("same {}", d.choice.name());
    let near = if d.choice == Choice::Order {
        ("correlation", format!("{:.6} of the scores", d.cosine_mean))
    } else {
        ("cosine", format!("{:.6} mean, {:.6} least of {} vectors", d.cosine_mean, d.cosine_min, d.vectors))
    };
    let mut rows = vec![
        ("texts", format!("{} of {} tokens", d.texts, d.tokens)),
        ("in integers", format!("{:.1} MB, setting {}", bytes as f64 / 1e6, shown.setting)),
        near,
        ("difference", format!("{:.6} mean, {:.6} largest", d.mean_difference, d.largest_difference)),
        (choice.as_str(), format!("{:.1} %", 100.0 * d.same_choice)),
    ];
    if let Some([float, exact]) = d.perplexity {
        let rise = 100.0 * (exact / float - 1.0);
        rows.push(("perplexity", format!("{exact:.3}, in floats {float:.3}: {rise:+.2} %")));
    }
    if let Some(divergence) = d.divergence {
        rows.push(("divergence", format!("{divergence:.5} nats from floats, mean of all positions")));
    }
    rows.push(("saturated", format!("{:.5} % of activations", 100.0 * d.saturated)));
    rows.extend(shown.exceeds.iter().map(|excess| ("WARNING", excess.clone())));
    output::table(&rows)
}
