//! Reading a text from nothing, logits of every token, against libtorch in 32-bit and bfloat16 floats.

use anyhow::Result;
use tensorlink_graph::transformer::{StageRunner, tokens};
use tensorlink_types::TensorRoot;

use super::figure::{Figure, Goal, Unit};
use super::floats::Floats;
use super::subject::{Untrained, text};
use super::time::{micros, race};
use super::{Measure, Row};
use crate::device;

/// Times faster than each of the [`Floats`].
const GOALS: [f64; 3] = [2.5, 2.5, 1.0];

pub(super) fn measure(measure: &Measure<'_>) -> Result<Vec<Figure>> {
    let extent = measure.extent;
    let size = extent.size();
    let engine = device::open(Some(measure.device))?;
    let untrained = Untrained::llama(size, engine.device())?;
    let model = untrained.quantized()?;
    let floats = Floats::new(untrained, engine.device())?;
    let (plan, constants) = model.stage(0..size.layers, |_| TensorRoot::default())?;
    drop(model);
    let runner = StageRunner::new(engine, plan, &constants)?;
    drop(constants);
    let mut figures = Vec::new();
    for count in extent.lengths() {
        let ids = text(count, size.vocabulary);
        let input = tokens(&ids)?;
        // Whether they can be computed at all.
        runner.run(&input)?;
        let rounds = extent.rounds((2000 / (count as usize + 20)).clamp(5, 31));
        for ((name, peer), goal) in floats.each().zip(GOALS) {
            peer.forward(&ids, None)?;
            let (ours, theirs) = race(rounds, || runner.run(&input), || peer.forward(&ids, None));
            let (ours, theirs) = (micros(ours) / 1e3, micros(theirs) / 1e3);
            let what = format!("a text of {count} tokens, times faster than {name}");
            let figure = Figure::new(Row::Prefill, what, (theirs / ours, Unit::Times), Some(Goal::AtLeast(goal)));
            figures.push(figure.from(format!("{ours:.1} ms against {theirs:.1}")));
        }
    }
    Ok(figures)
}
