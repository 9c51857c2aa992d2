//! `tensorlink model quantize`.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::folder::count;
use crate::config::Config;
use crate::folder::{ModelFolder, integers, vacant};
use crate::output;
use crate::quantized::{Quantising, exact};

#[derive(Serialize)]
struct Made<'a> {
    folder: &'a Path,
    parameters: u64,
    bytes: u64,
    root: String,
    seconds: f64,
}

/// Quantises a folder into a new one.
pub(super) fn quantize(config: &Config, path: &Path, out: &Path, how: &Quantising, device: Option<&str>) -> Result<()> {
    vacant(out)?;
    let folder = ModelFolder::open(path)?;
    folder.checkpoint()?;
    let device = crate::device::open(device)?.device();
    let start = Instant::now();
    eprintln!("calibrating and quantising {} ...", path.display());
    let exact = exact(&folder, how, device)?;
    eprintln!("writing {} ...", out.display());
    let root = integers::write(&folder, &exact, out)?;
    let made = Made {
        folder: out,
        parameters: count(folder.architecture()),
        bytes: exact.bytes(),
        root,
        seconds: start.elapsed().as_secs_f64(),
    };
    output::print(config.json, &made, || {
        output::table(&[
            ("written", made.folder.display().to_string()),
            ("parameters", format!("{} in {:.1} MB of integers", made.parameters, made.bytes as f64 / 1e6)),
            ("root", made.root.clone()),
            ("took", format!("{:.1} s", made.seconds)),
        ])
    })
}
