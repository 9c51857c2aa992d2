//! What a decoder expects to follow, by integers and by floats: a trained one in each setting, over text that
//! calibration never saw; and untrained ones, whose logits lie close together, so that the largest changes more easily.

use std::path::Path;

use anyhow::Result;
use tensorlink_folder::ModelFolder;
use tensorlink_model::Setting;
use tensorlink_model::random::{self, Dimensions};

use super::figure::{Figure, Goal, Unit};
use super::subject::Subject;
use super::{Measure, Row};
use crate::device;
use crate::quantized::loss::Tolerance;
use crate::quantized::passages::{PIECES, passages};
use crate::quantized::{Distance, Prepared, distance};

const SIZE: Dimensions =
    Dimensions { vocabulary: 4000, width: 256, layers: 4, heads: 4, kv_heads: 2, hidden: 768, context: 128 };
/// Share of positions in which an untrained decoder's largest logit is the same.
const GOAL: f64 = 0.97;
/// Tokens of a made-up text.
const TOKENS: u32 = 100;

/// Texts of made-up tokens.
fn texts(count: u32, seed: u32) -> Vec<Vec<u32>> {
    let token = |i: u32| i.wrapping_mul(2_654_435_761).rotate_left(9).wrapping_mul(2_246_822_519) % SIZE.vocabulary;
    (0..count).map(|text| (0..TOKENS).map(|i| token(seed + text * 1000 + i)).collect()).collect()
}

pub(super) fn measure(measure: &Measure<'_>) -> Result<Vec<Figure>> {
    let mut figures = match measure.trained() {
        Some(path) => trained(measure, path)?,
        None => Vec::new(),
    };
    figures.extend(untrained(measure)?);
    Ok(figures)
}

/// A trained decoder over pieces of the King James text.
fn trained(measure: &Measure<'_>, path: &Path) -> Result<Vec<Figure>> {
    let engine = device::open(Some(measure.device))?;
    let texts = passages(ModelFolder::open(path)?.tokenizer(), PIECES)?;
    let mut subject = Subject::trained(path, engine.device())?;
    let mut figures = Vec::new();
    for setting in Setting::ALL {
        let prepared = Prepared { exact: subject.quantized(setting)?, float: subject.float };
        let distance = distance(&prepared, engine.clone(), &texts)?;
        subject.float = prepared.float;
        figures.extend(of(Row::Logits, &format!("{}, {setting}", subject.name), &distance));
    }
    Ok(figures)
}

/// The figures of a decoder against its floats. What is served without a warning is the goal.
pub(super) fn of(row: Row, name: &str, d: &Distance) -> Vec<Figure> {
    let Tolerance { perplexity_rise, same_choice, .. } = Tolerance::DEFAULT;
    let ([float, exact], divergence) = (d.perplexity.unwrap_or([f64::NAN; 2]), d.divergence.unwrap_or(f64::NAN));
    let positions = format!("{} positions of the King James text", d.vectors);
    let figure = |what: &str, value, goal| Figure::new(row, format!("{name}, against f32: {what}"), value, goal);
    vec![
        figure("same largest logit", (d.same_choice, Unit::Share), Some(Goal::AtLeast(same_choice)))
            .from(positions.clone()),
        figure("perplexity", (exact / float, Unit::Times), Some(Goal::AtMost(1.0 + perplexity_rise)))
            .from(format!("{exact:.3} against {float:.3}, {positions}")),
        figure("divergence, nats", (divergence, Unit::Number), None).from(format!("{divergence:.6}, {positions}")),
    ]
}

fn untrained(measure: &Measure<'_>) -> Result<Vec<Figure>> {
    let engine = device::open(Some(measure.device))?;
    let seen = texts(if measure.extent.quick { 1 } else { 20 }, 99);
    let known = texts(8, 7);
    let decoders = [("GPT-2-shaped", random::gpt2(SIZE)), ("Llama-shaped", random::llama(SIZE))];
    let figure = |(name, architecture): (&str, _)| {
        let weights = random::weights(&architecture, 1)?;
        let subject = Subject::calibrated(name.to_owned(), (architecture, weights), engine.device(), &known)?;
        let prepared = Prepared { exact: subject.quantized(Setting::default())?, float: subject.float };
        let d = distance(&prepared, engine.clone(), &seen)?;
        let what = format!("{name}, random weights, against f32: same largest logit");
        let figure = Figure::new(Row::Logits, what, (d.same_choice, Unit::Share), Some(Goal::AtLeast(GOAL)));
        let divergence = d.divergence.unwrap_or(f64::NAN);
        Ok(figure.from(format!("{} positions, divergence {divergence:.5} nats", d.vectors)))
    };
    decoders.into_iter().map(figure).collect()
}
