//! `tensorlink model quantize`.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use tensorlink_folder::{Distance, ModelFolder, integers, vacant};
use tensorlink_model::Setting;

use super::folder::count;
use crate::config::Config;
use crate::live::say;
use crate::output;
use crate::quantized::{Quantising, loss, measured};

#[derive(Serialize)]
struct Made<'a> {
    folder: &'a Path,
    setting: Setting,
    parameters: u64,
    bytes: u64,
    root: String,
    /// On texts that calibration never saw.
    distance: Option<&'a Distance>,
    seconds: f64,
}

/// Quantises a folder into a new one.
pub(super) fn quantize(config: &Config, path: &Path, out: &Path, how: &Quantising, device: Option<&str>) -> Result<()> {
    vacant(out)?;
    let folder = ModelFolder::open(path)?;
    folder.checkpoint()?;
    let engine = crate::device::open(device)?;
    let start = Instant::now();
    say!("calibrating and quantising {} ...", path.display());
    let measured = measured(&folder, how, &engine)?;
    let (exact, distance) = (&measured.exact, measured.distance.as_ref());
    say!("writing {} ...", out.display());
    let root = integers::write(&folder, exact, distance, out)?;
    if let Some(warning) = distance.and_then(|distance| loss::warning(distance, exact.setting())) {
        tracing::warn!("{warning}");
    }
    let made = Made {
        folder: out,
        setting: exact.setting(),
        parameters: count(folder.architecture()),
        bytes: exact.bytes(),
        root,
        distance,
        seconds: start.elapsed().as_secs_f64(),
    };
    output::print(config.json, &made, || {
        output::table(&[
            ("written", made.folder.display().to_string()),
            ("parameters", format!("{} in {:.1} MB of integers", made.parameters, made.bytes as f64 / 1e6)),
            ("setting", made.setting.to_string()),
            ("lost", made.distance.map_or_else(|| "not known: no texts to measure on".into(), loss::told)),
            ("root", made.root.clone()),
            ("took", format!("{:.1} s", made.seconds)),
        ])
    })
}
