//! How far a folder's model in integers is from its floats.

use std::path::Path;

use anyhow::{Result, bail};
use tensorlink_graph::transformer::{Output, Setting};

use super::figure::{Figure, Goal, Unit};
use super::{Measure, Row};
use crate::device;
use crate::folder::ModelFolder;
use crate::quantized::{SENTENCES, distance, encode, known, prepare_on};

/// Where `script/setup` puts a small encoder, seen from the project's root.
const DEFAULT: &str = ".toolchain/models/all-MiniLM-L6-v2";
/// Cosines of an encoder's vectors: mean, least.
const ENCODER: [f64; 2] = [0.995, 0.98];
/// Share of tokens after which a decoder's largest logit is the same.
const DECODER: f64 = 0.97;
/// Texts of a quick run.
const FEW: usize = 4;

pub(super) fn measure(measure: &Measure<'_>) -> Result<Vec<Figure>> {
    let default = Path::new(DEFAULT);
    let path = match measure.model {
        Some(path) => path,
        None if default.is_dir() => default,
        None => return Ok(vec![Figure::absent(Row::Model, "accuracy of a trained model", "give --model FOLDER")]),
    };
    let folder = ModelFolder::open(path)?;
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    let mut texts = encode(&folder, SENTENCES)?;
    if measure.extent.quick {
        texts.truncate(FEW);
    }
    let engine = device::open(Some(measure.device))?;
    let prepared = prepare_on(&folder, &known(&folder, None)?, Setting::default(), engine.device())?;
    let d = distance(&prepared, engine, &texts)?;
    let note = format!("{} texts, {} tokens", d.texts, d.tokens);
    let figure = |what: &str, value, goal| {
        Figure::new(Row::Model, format!("{name}, exact against f32: {what}"), value, goal).from(note.clone())
    };
    Ok(match folder.architecture().output {
        Output::Classes(_) => bail!("{name} tells classes of texts apart, which is not served: choose another model"),
        Output::Embedding(_) => vec![
            figure("cosine, mean", (d.cosine_mean, Unit::Number), Some(Goal::AtLeast(ENCODER[0]))),
            figure("cosine, least", (d.cosine_min, Unit::Number), Some(Goal::AtLeast(ENCODER[1]))),
        ],
        Output::Logits { .. } => {
            let [float, exact] = d.perplexity.unwrap_or([f64::NAN; 2]);
            vec![
                figure("same largest logit", (d.same_choice, Unit::Share), Some(Goal::AtLeast(DECODER))),
                figure("perplexity", (exact / float, Unit::Times), None),
            ]
        }
    })
}
