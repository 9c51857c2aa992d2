//! All stages of a replica in one process, each by the code of its worker: what a stage must have received where none
//! of its neighbours tells.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use bytes::Bytes;
use tensorlink_num::Tensor;
use tensorlink_program::engine::{Engine, EngineError};
use tensorlink_program::executor::{ExecuteError, StageExecutor};
use tensorlink_proof::commit::{Boundary, io_root};
use tensorlink_types::{B256, Lineage};
use thiserror::Error;

use crate::interval::{self, Boundaries, IntervalError, Span, sequential};
use crate::replay::Replay;
use crate::shard::Shard;

/// Tensors on their way between two stages at the most.
const QUEUE: usize = 4;

/// The stages of a replica, in order.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// What each needs.
    pub shards: Vec<Arc<Shard>>,
    /// What keys every draw, and where the job's steps begin.
    pub lineage: Lineage,
    /// Steps of an interval.
    pub steps: u32,
}

/// What came of an interval.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The interval of the stage that was asked for.
    pub replay: Replay,
    /// What each stage has to claim.
    pub claims: Vec<Due>,
}

/// What an honest worker claims of an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// Root of the state after it (rule C-6).
    pub new_state: B256,
    /// Root of the boundary logs (rule C-8).
    pub io: B256,
}

/// Why a pipeline could not be executed.
#[derive(Debug, Error)]
pub enum PipelineError {
    /// There is no usable device.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The device failed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// An interval could not be finished.
    #[error(transparent)]
    Interval(#[from] IntervalError<Ended>),
    /// No such stage, or an execution that ended in a panic.
    #[error("stage {0} of the pipeline was not executed")]
    Missing(u16),
}

/// A neighbour was not executed to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("the execution of a neighbouring stage ended")]
pub struct Ended;

impl Pipeline {
    /// Executes all stages from the job's first step on: what a stage had before an interval and received in it, if
    /// everybody was honest, and what all come to. Blocks, on a thread a stage.
    ///
    /// # Errors
    /// [`PipelineError`].
    pub fn replay<E: Engine>(
        &self,
        engine: impl Fn() -> Result<E, EngineError> + Sync,
        stage: u16,
        interval: u32,
    ) -> Result<Executed, PipelineError> {
        let stages = self.shards.iter().zip(channels(self.shards.len()));
        let outcomes: Vec<Result<_, PipelineError>> = thread::scope(|scope| {
            let engine = &engine;
            let execute = |(shard, channels): (&Arc<Shard>, Channels)| {
                let shard = shard.clone();
                scope.spawn(move || self.execute(engine()?, &shard, channels, interval))
            };
            let started: Vec<_> = stages.map(execute).collect();
            (0..).zip(started).map(|(at, thread)| thread.join().unwrap_or(Err(PipelineError::Missing(at)))).collect()
        });
        // What failed elsewhere is why a neighbour ended.
        let (ended, outcomes): (Vec<_>, Vec<_>) = outcomes
            .into_iter()
            .partition(|outcome| matches!(outcome, Err(PipelineError::Interval(IntervalError::Boundary(Ended)))));
        let mut executed = outcomes.into_iter().chain(ended).collect::<Result<Vec<_>, _>>()?;
        let claims = executed.iter().map(|(.., due)| *due).collect();
        let (Some(shard), true) = (self.shards.get(usize::from(stage)), usize::from(stage) < executed.len()) else {
            return Err(PipelineError::Missing(stage));
        };
        let (state, inputs, _) = executed.swap_remove(stage.into());
        let (shard, lineage, span) = (shard.clone(), self.lineage, self.span(interval));
        Ok(Executed { replay: Replay { shard, lineage, span, state, inputs: inputs.into() }, claims })
    }

    fn span(&self, interval: u32) -> Span {
        Span { first_step: interval.saturating_mul(self.steps), steps: self.steps }
    }

    /// State before the last interval, what was received in it, and what is to be claimed of it.
    fn execute<E: Engine>(
        &self,
        engine: E,
        shard: &Shard,
        mut channels: Channels,
        last: u32,
    ) -> Result<(Vec<Tensor>, Vec<u8>, Due), PipelineError> {
        let (program, schedule) = (shard.program.as_ref().clone(), sequential(&shard.program));
        let mut executor =
            StageExecutor::new(engine, program, &shard.constants, &shard.initial_state, self.lineage, [])?;
        for interval in 0..last {
            interval::run(&mut executor, self.span(interval), &schedule, &mut channels, |_, _| Ok(()))?;
        }
        let before = executor.state()?;
        let outcome = interval::run(&mut executor, self.span(last), &schedule, &mut channels, |_, _| Ok(()))?;
        let due = Due { new_state: outcome.state_root, io: io_root(&outcome.logs.roots()) };
        Ok((before, outcome.inputs, due))
    }
}

/// Neighbours in this process.
#[derive(Default)]
struct Channels {
    from_previous: Option<Receiver<Bytes>>,
    to_previous: Option<SyncSender<Bytes>>,
    from_next: Option<Receiver<Bytes>>,
    to_next: Option<SyncSender<Bytes>>,
}

/// Of so many stages in a row.
fn channels(stages: usize) -> Vec<Channels> {
    let mut channels: Vec<Channels> = Vec::new();
    for _ in 0..stages {
        let mut own = Channels::default();
        if let Some(previous) = channels.last_mut() {
            let (forward, backward) = (sync_channel(QUEUE), sync_channel(QUEUE));
            (previous.to_next, own.from_previous) = (Some(forward.0), Some(forward.1));
            (own.to_previous, previous.from_next) = (Some(backward.0), Some(backward.1));
        }
        channels.push(own);
    }
    channels
}

impl Boundaries for Channels {
    type Error = Ended;

    fn receive(&mut self, boundary: Boundary, _: u32, _: u32) -> Result<Bytes, Ended> {
        let from = if boundary == Boundary::FromPrevious { &self.from_previous } else { &self.from_next };
        from.as_ref().and_then(|from| from.recv().ok()).ok_or(Ended)
    }

    fn must_wait(&self, _: Boundary) -> bool {
        // Nobody has to be quick here; what is hashed a step later is hashed all the same.
        false
    }

    fn send(&mut self, boundary: Boundary, _: u32, _: u32, data: Bytes) -> Result<(), Ended> {
        let to = if boundary == Boundary::ToNext { &self.to_next } else { &self.to_previous };
        to.as_ref().and_then(|to| to.send(data).ok()).ok_or(Ended)
    }
}
