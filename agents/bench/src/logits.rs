//! What a decoder expects to follow, by integers and by floats: a trained one in each setting, over text that
//! calibration never saw; and untrained ones, whose logits lie close together, so that the largest changes more easily.

use std::path::Path;

use anyhow::Result;
use tensorlink_folder::texts::{PIECES, passages};
use tensorlink_folder::{Distance, ModelFolder, Tolerance};
use tensorlink_model::Setting;
use tensorlink_model::random::{self, Dimensions};

use super::figure::{Figure, Goal, Unit};
use super::subject::Subject;
use super::{Bench, Row};

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

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let mut figures = match bench.trained() {
        Some(path) => trained(bench, path)?,
        None => Vec::new(),
    };
    figures.extend(untrained(bench)?);
    Ok(figures)
}

/// A trained decoder over pieces of the King James text.
fn trained(bench: &Bench<'_>, path: &Path) -> Result<Vec<Figure>> {
    let engine = bench.engine()?;
    let texts = passages(ModelFolder::open(path)?.tokenizer(), PIECES)?;
    let subject = Subject::trained(path, engine.device())?;
    let mut figures = Vec::new();
    for setting in Setting::ALL {
        let distance = subject.distance(setting, engine.clone(), &texts)?;
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

fn untrained(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let engine = bench.engine()?;
    let seen = texts(if bench.extent.quick { 1 } else { 20 }, 99);
    let known = texts(8, 7);
    let decoders = [("GPT-2-shaped", random::gpt2(SIZE)), ("Llama-shaped", random::llama(SIZE))];
    let figure = |(name, architecture): (&str, _)| {
        let weights = random::weights(&architecture, 1)?;
        let subject = Subject::calibrated(name.to_owned(), (architecture, weights), engine.device(), &known)?;
        let d = subject.distance(Setting::default(), engine.clone(), &seen)?;
        let what = format!("{name}, random weights, against f32: same largest logit");
        let figure = Figure::new(Row::Logits, what, (d.same_choice, Unit::Share), Some(Goal::AtLeast(GOAL)));
        let divergence = d.divergence.unwrap_or(f64::NAN);
        Ok(figure.from(format!("{} positions, divergence {divergence:.5} nats", d.vectors)))
    };
    decoders.into_iter().map(figure).collect()
}
