//! How far folders' models in integers are from their floats, over sentences.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use tensorlink_folder::texts::{SENTENCES, encode};
use tensorlink_folder::{ModelFolder, Tolerance};
use tensorlink_model::{Output, Setting};

use super::figure::{Figure, Goal, Unit};
use super::subject::{Subject, name};
use super::{Bench, DECODER, Row};

/// Where `script/setup` puts a small encoder, seen from the project's root.
const ENCODER: &str = ".toolchain/models/all-MiniLM-L6-v2";
/// Cosines of an encoder's vectors: mean, least.
const COSINES: [f64; 2] = [0.995, 0.98];
/// Texts of a quick run.
const FEW: usize = 4;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let paths: Vec<PathBuf> = match bench.model {
        Some(path) => vec![path.to_owned()],
        // A decoder takes its time.
        None if bench.extent.quick => vec![ENCODER.into()],
        None => vec![ENCODER.into(), DECODER.into()],
    };
    let present: Vec<PathBuf> = paths.into_iter().filter(|path| bench.model.is_some() || path.exists()).collect();
    if present.is_empty() {
        let why = "run script/setup, or give --model FOLDER";
        return Ok(vec![Figure::absent(Row::Model, "accuracy of a trained model", why)]);
    }
    let figures = present.iter().map(|path| of(bench, path)).collect::<Result<Vec<_>>>()?;
    Ok(figures.concat())
}

fn of(bench: &Bench<'_>, path: &Path) -> Result<Vec<Figure>> {
    let (folder, name) = (ModelFolder::open(path)?, name(path));
    let mut texts = encode(&folder, SENTENCES)?;
    if bench.extent.quick {
        texts.truncate(FEW);
    }
    let engine = bench.engine()?;
    let subject = Subject::of_folder(name.clone(), &folder, engine.device())?;
    let d = subject.distance(Setting::default(), engine, &texts)?;
    let note = format!("{} sentences, {} tokens", d.texts, d.tokens);
    let figure = |what: &str, value, goal| {
        Figure::new(Row::Model, format!("{name}, against f32: {what}"), value, goal).from(note.clone())
    };
    Ok(match folder.architecture().output {
        Output::Classes(_) => {
            bail!("{name} tells classes of texts apart, which is not compared here: choose another model")
        }
        Output::Embedding(_) => vec![
            figure("cosine, mean", (d.cosine_mean, Unit::Number), Some(Goal::AtLeast(COSINES[0]))),
            figure("cosine, least", (d.cosine_min, Unit::Number), Some(Goal::AtLeast(COSINES[1]))),
        ],
        Output::Logits { .. } => {
            let Tolerance { perplexity_rise, same_choice, .. } = Tolerance::DEFAULT;
            let [float, exact] = d.perplexity.unwrap_or([f64::NAN; 2]);
            vec![
                figure("same largest logit", (d.same_choice, Unit::Share), Some(Goal::AtLeast(same_choice))),
                figure("perplexity", (exact / float, Unit::Times), Some(Goal::AtMost(1.0 + perplexity_rise))),
                figure("divergence, nats", (d.divergence.unwrap_or(f64::NAN), Unit::Number), None),
            ]
        }
    })
}
