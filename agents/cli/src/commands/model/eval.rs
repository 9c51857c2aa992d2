//! `tensorlink model eval`.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::args::EvalArgs;
use crate::calibration::known;
use crate::config::Config;
use crate::folder::ModelFolder;
use crate::output;
use crate::quantized::{Distance, SENTENCES, beside, distance, encode, prepare_on, texts};

/// Compares a folder's model in integers with its floats: of the same folder, or of the one it was made of.
pub(super) fn eval(config: &Config, args: &EvalArgs) -> Result<()> {
    let folder = ModelFolder::open(&args.model)?;
    let measured = encode(&folder, &texts(args.texts.as_deref(), SENTENCES)?)?;
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
    eprintln!("comparing {} texts ...", measured.len());
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
