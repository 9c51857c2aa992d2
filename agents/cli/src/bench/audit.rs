//! What a drawn validator computes to answer for an interval, against what its worker did.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use bytes::Bytes;
use tensorlink_graph::calibrate::job_key;
use tensorlink_graph::{CheckedProgram, CompiledStage};
use tensorlink_node::interval::Span;
use tensorlink_node::replay::Replay;
use tensorlink_node::shard::Shard;
use tensorlink_num::Tensor;
use tensorlink_tensor::TorchEngine;

use super::Row;
use super::figure::{Figure, Goal, Unit};
use super::step::Subject;
use super::time::{millis, once_everywhere};

/// Times the worker's steps.
const GOAL: f64 = 1.2;

/// A model that one worker has, before anybody trained it.
pub(super) struct Audited(CompiledStage);

impl Audited {
    pub(super) fn new(subject: &Subject) -> Result<Self> {
        let all = 0..subject.training.layers.len();
        let stages = subject.stages(std::slice::from_ref(&all)).map_err(Error::from_boxed)?;
        Ok(Self(stages.into_iter().next().ok_or_else(|| anyhow!("a model without layers"))?))
    }

    /// Audits of an interval that begins at a state, each step of which took the worker so long: one of a single step, and one of some more.
    /// What is left of the first without a step is what an audit takes whatever its length, hashing all that a step computes.
    pub(super) fn figure(
        self,
        engine: &TorchEngine,
        state: Vec<Tensor>,
        (worker, more): (Duration, u32),
        interval: u32,
    ) -> Result<Figure> {
        let shard = Shard {
            program: Arc::new(CheckedProgram::new(self.0.program)?),
            constants: self.0.constants.into(),
            initial_state: Arc::default(),
            info: self.0.info,
        };
        let span = |steps| Span { first_step: 0, steps };
        let mut replay =
            Replay { shard: Arc::new(shard), lineage: job_key(1).into(), span: span(1), state, inputs: Bytes::new() };
        let audit = |replay: &Replay| {
            let mut outcome = None;
            let taken = once_everywhere(|| outcome = Some(replay.answer(engine.clone())));
            outcome.transpose()?;
            Ok::<_, Error>(taken)
        };
        // The first finds no memory to use again.
        audit(&replay)?;
        let one = audit(&replay)?;
        replay.span = span(1 + more);
        let step = audit(&replay)?.saturating_sub(one) / more.max(1);
        let all = one.saturating_sub(step) + step * interval;
        let times = all.as_secs_f64() / (worker * interval).as_secs_f64();
        let what = format!("an audit of {interval} steps, times what they took");
        let figure = Figure::new(Row::Train, what, (times, Unit::Times), Some(Goal::AtMost(GOAL)));
        let [one, step, worker] = [one, step, worker].map(millis);
        Ok(figure.from(format!(
            "{one:.0} ms for the last step and all its roots, {step:.0} for each other; {worker:.0} a step"
        )))
    }
}
