//! How often an untrained decoder's largest logit is the same by integers as by floats. Untrained logits lie close
//! together, so that the largest changes more easily than a trained model's.

use anyhow::Result;
use tensorlink_graph::transformer::random::{self, Dimensions};

use super::figure::{Figure, Goal, Unit};
use super::subject::Untrained;
use super::{Measure, Row};
use crate::device;
use crate::quantized::{Prepared, distance};

const SIZE: Dimensions =
    Dimensions { vocabulary: 4000, width: 256, layers: 4, heads: 4, kv_heads: 2, hidden: 768, context: 128 };
/// Share of positions.
const GOAL: f64 = 0.97;
/// Tokens of a text.
const TOKENS: u32 = 100;

/// Texts of made-up tokens.
fn texts(count: u32, seed: u32) -> Vec<Vec<u32>> {
    let token = |i: u32| i.wrapping_mul(2_654_435_761).rotate_left(9).wrapping_mul(2_246_822_519) % SIZE.vocabulary;
    (0..count).map(|text| (0..TOKENS).map(|i| token(seed + text * 1000 + i)).collect()).collect()
}

pub(super) fn measure(measure: &Measure<'_>) -> Result<Vec<Figure>> {
    let engine = device::open(Some(measure.device))?;
    let seen = texts(if measure.extent.quick { 1 } else { 20 }, 99);
    let known = texts(8, 7);
    let decoders = [("GPT-2-shaped", random::gpt2(SIZE)), ("Llama-shaped", random::llama(SIZE))];
    let figure = |(name, architecture)| {
        let weights = random::weights(&architecture, 1)?;
        let untrained = Untrained::calibrated(architecture, weights, engine.device(), &known)?;
        let prepared = Prepared { exact: untrained.quantized()?, float: untrained.float };
        let d = distance(&prepared, engine.clone(), &seen)?;
        let what = format!("{name}, untrained, exact against f32: same largest logit");
        let figure = Figure::new(Row::Logits, what, (d.same_choice, Unit::Share), Some(Goal::AtLeast(GOAL)));
        Ok(figure.from(format!("{} positions, mean cosine {:.5}", d.vectors, d.cosine_mean)))
    };
    decoders.into_iter().map(figure).collect()
}
