//! `tensorlink model merge`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use tensorlink_folder::{Adapters, ModelFolder, Tuned, vacant};

use crate::config::Config;
use crate::output;

#[derive(Serialize)]
struct Merged {
    rank: u32,
    alpha: u32,
    /// Projections that changed.
    projections: usize,
    out: PathBuf,
}

/// Adds adapters to the weights of a folder, and writes the sum to a new one.
pub(super) fn merge(config: &Config, model: &Path, adapters: &Path, out: &Path) -> Result<()> {
    vacant(out)?;
    let folder = ModelFolder::open(model)?;
    let architecture = folder.architecture();
    let Adapters { lora, matrices } = Adapters::open(adapters, architecture)?;
    let weights = lora.merge(architecture, &folder.weights()?, &matrices)?;
    Tuned { folder: &folder, architecture, weights: &weights, classes: &[] }.write(out)?;
    let projections = lora.projections(architecture).count();
    let merged = Merged { rank: lora.rank, alpha: lora.alpha, projections, out: out.to_owned() };
    output::print(config.json, &merged, || {
        output::table(&[
            ("adapters", format!("of rank {} beside {projections} projections", merged.rank)),
            ("written to", merged.out.display().to_string()),
        ])
    })
}
