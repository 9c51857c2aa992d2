//! A whole pipeline in one process: every stage on its own engine, tensors handed over directly. For trial runs, tests
//! and benchmarks; what travels is what would travel between workers.

use std::ops::Range;

use tensorlink_num::Tensor;
use tensorlink_program::check::{CheckedProgram, rounds};
use tensorlink_program::engine::Engine;
use tensorlink_program::executor::{ExecuteError, StageExecutor};
use tensorlink_program::watch::Trace;
use tensorlink_types::Lineage;

use crate::metrics::Metrics;
use crate::whole::StageInfo;

/// One stage: its program and what it starts from.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// Checked program.
    pub program: &'a CheckedProgram,
    /// What people want to know about it.
    pub info: &'a StageInfo,
    /// Constants in the program's order.
    pub constants: &'a [Tensor],
    /// State in the program's order.
    pub state: &'a [Tensor],
}

/// In which order micro-batches pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// All forward passes of a round, then all its backward passes (Huang et al., *GPipe*, 2019).
    AllForward,
    /// Backward of a micro-batch right after its forward pass: the end state of 1F1B (Narayanan et al.,
    /// *PipeDream*, 2019).
    OneByOne,
}

/// All stages of a job.
pub struct LocalPipeline<E: Engine> {
    stages: Vec<(StageExecutor<E>, StageInfo)>,
    /// Micro-batches of each round.
    rounds: Vec<Range<u32>>,
}

impl<E: Engine> LocalPipeline<E> {
    /// Sets up every stage; `engine` makes one engine for each.
    ///
    /// # Errors
    /// As [`StageExecutor::new`].
    pub fn new(
        stages: &[Stage<'_>],
        lineage: impl Into<Lineage>,
        engine: impl Fn() -> E,
    ) -> Result<Self, ExecuteError> {
        let lineage = lineage.into();
        let rounds = stages.first().map(|stage| rounds(stage.program)).unwrap_or_default();
        let set_up = |stage: &Stage<'_>| {
            let observed = stage.info.labels.iter().chain(&stage.info.probabilities).copied();
            let program = stage.program.clone();
            let executor = StageExecutor::new(engine(), program, stage.constants, stage.state, lineage, observed)?;
            Ok((executor, stage.info.clone()))
        };
        Ok(Self { stages: stages.iter().map(set_up).collect::<Result<_, _>>()?, rounds })
    }

    /// Runs one training step; loss and accuracy are those before the update.
    ///
    /// # Errors
    /// As [`StageExecutor::forward`].
    pub fn step(&mut self, step: u32, schedule: Schedule) -> Result<Metrics, ExecuteError> {
        for (stage, _) in &mut self.stages {
            stage.begin_step(step)?;
        }
        for round in self.rounds.clone() {
            for mb in round.clone() {
                self.forward(mb)?;
                if schedule == Schedule::OneByOne {
                    self.backward(mb)?;
                }
            }
            if schedule == Schedule::AllForward {
                round.into_iter().try_for_each(|mb| self.backward(mb))?;
            }
        }
        let mut metrics = Metrics::default();
        for (stage, info) in &mut self.stages {
            stage.update()?;
            metrics += Metrics::of_step(stage, info)?;
        }
        Ok(metrics)
    }

    fn forward(&mut self, mb: u32) -> Result<(), ExecuteError> {
        let mut passed = None;
        for (stage, _) in &mut self.stages {
            passed = stage.forward(mb, passed.as_ref())?;
        }
        Ok(())
    }

    fn backward(&mut self, mb: u32) -> Result<(), ExecuteError> {
        let mut passed = None;
        for (stage, _) in self.stages.iter_mut().rev() {
            passed = stage.backward(mb, passed.as_ref())?;
        }
        Ok(())
    }

    /// State of each stage.
    ///
    /// # Errors
    /// The device's.
    pub fn state(&self) -> Result<Vec<Vec<Tensor>>, ExecuteError> {
        self.stages.iter().map(|(stage, _)| stage.state()).collect()
    }

    /// Keeps every operator's output of the steps from now on, by stage.
    pub fn trace(&mut self) -> Vec<Trace> {
        let watched = |stage: &mut StageExecutor<E>| {
            let trace = Trace::default();
            stage.watch(Some(trace.watch()));
            trace
        };
        self.executors().map(watched).collect()
    }

    /// The stages' executors, first to last.
    pub fn executors(&mut self) -> impl Iterator<Item = &mut StageExecutor<E>> {
        self.stages.iter_mut().map(|(stage, _)| stage)
    }
}
