//! `tensorlink model eval`.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use crate::config::Config;
use crate::folder::{ModelFolder, read_text};
use crate::output;
use crate::quantized::{CALIBRATION, Distance, SENTENCES, distance, encode, prepare};

/// Texts to use: a file's, or ours.
fn texts(file: Option<&Path>, ours: &str) -> Result<String> {
    Ok(match file {
        Some(path) => read_text(path)?,
        None => ours.to_owned(),
    })
}

/// Quantises a folder and compares it with its floats.
pub(super) fn eval(
    config: &Config,
    path: &Path,
    file: Option<&Path>,
    calibration: Option<&Path>,
    device: Option<&str>,
) -> Result<()> {
    let folder = ModelFolder::open(path)?;
    let measured = encode(&folder, &texts(file, SENTENCES)?)?;
    let engine = crate::device::open(device)?;
    let start = Instant::now();
    let prepared = prepare(&folder, &texts(calibration, CALIBRATION)?, engine.device())?;
    tracing::info!(seconds = start.elapsed().as_secs_f64(), "calibrated and quantised");
    let distance = distance(&prepared, engine, &measured)?;
    output::print(config.json, &distance, || text(&distance, prepared.exact.bytes()))
}

fn text(d: &Distance, bytes: u64) -> String {
    let choice = if d.perplexity.is_some() { "same next token" } else { "same neighbour" };
    let mut rows = vec![
        ("texts", format!("{} of {} tokens", d.texts, d.tokens)),
        ("in integers", format!("{:.1} MB", bytes as f64 / 1e6)),
        ("cosine", format!("{:.6} mean, {:.6} least of {} vectors", d.cosine_mean, d.cosine_min, d.vectors)),
        ("difference", format!("{:.6} mean, {:.6} largest", d.mean_difference, d.largest_difference)),
        (choice, format!("{:.1} %", 100.0 * d.same_choice)),
    ];
    if let Some([float, exact]) = d.perplexity {
        rows.push(("perplexity", format!("{exact:.3}, in floats {float:.3}")));
    }
    rows.push(("saturated", format!("{:.5} % of activations", 100.0 * d.saturated)));
    output::table(&rows)
}
