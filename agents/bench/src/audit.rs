//! What a drawn validator computes to answer for an interval, against what its worker did.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use bytes::Bytes;
use tensorlink_node::interval::Span;
use tensorlink_node::replay::Replay;
use tensorlink_node::shard::Shard;
use tensorlink_num::Tensor;
use tensorlink_program::CheckedProgram;
use tensorlink_tensor::TorchEngine;
use tensorlink_training::CompiledStage;
use tensorlink_training::calibrate::job_key;

use super::Row;
use super::figure::{Figure, Goal, Unit};
use super::step::Subject;
use super::time::{millis, once_everywhere};

/// Times the worker's steps.
const GOAL: f64 = 1.2;
/// Share of the intervals that is drawn, and what their audits may take of what all intervals took.
const DRAWN: f64 = 0.05;
const DRAWN_GOAL: f64 = 0.06;

/// A model that one worker has, before anybody trained it.
pub(super) struct Audited(CompiledStage);

impl Audited {
    pub(super) fn new(subject: &Subject) -> Result<Self> {
        let all = 0..subject.training.layers.len();
        let stages = subject.stages(std::slice::from_ref(&all)).map_err(Error::from_boxed)?;
        Ok(Self(stages.into_iter().next().ok_or_else(|| anyhow!("a model without layers"))?))
    }

    /// An audit of an interval that begins at a state, each step of which took the worker so long. It includes setting
    /// up an engine; of its last step the roots of everything are taken.
    pub(super) fn figures(
        self,
        engine: &TorchEngine,
        state: Vec<Tensor>,
        (worker, steps): (Duration, u32),
    ) -> Result<[Figure; 2]> {
        let shard = Shard {
            memory: None,
            program: Arc::new(CheckedProgram::new(self.0.program)?),
            constants: self.0.constants.into(),
            initial_state: Arc::default(),
            info: self.0.info,
            bounds: Default::default(),
        };
        let span = Span { first_step: 0, steps };
        let replay = Replay { shard: Arc::new(shard), lineage: job_key(1).into(), span, state, inputs: Bytes::new() };
        let mut outcome = None;
        let audit = once_everywhere(|| outcome = Some(replay.answer(engine.clone())));
        outcome.transpose()?;
        let times = audit.as_secs_f64() / (worker * steps).as_secs_f64();
        let what = format!("the same: an audit of {steps} steps, times what they took");
        let one = Figure::new(Row::Train, what, (times, Unit::Times), Some(Goal::AtMost(GOAL))).from(format!(
            "{:.0} ms; {:.0} a step",
            millis(audit),
            millis(worker)
        ));
        let what = format!("the same: audits of {:.0} % of intervals, share of what all took", 100.0 * DRAWN);
        let drawn = Figure::new(Row::Train, what, (DRAWN * times, Unit::Share), Some(Goal::AtMost(DRAWN_GOAL)))
            .from("one validator for each that is drawn");
        Ok([one, drawn])
    }
}
