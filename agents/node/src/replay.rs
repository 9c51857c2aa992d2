//! Repeats a recorded interval: what auditors compare with, and what a worker signs when asked about its steps.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tensorlink_num::Tensor;
use tensorlink_program::engine::{Engine, EngineError};
use tensorlink_program::executor::{ExecuteError, StageExecutor};
use tensorlink_program::watch::Watch;
use tensorlink_proof::commit::{Boundary, BoundaryLists, tensor_roots, trace_root};
use tensorlink_types::abi::AuditAnswer;
use tensorlink_types::{B256, Lineage, Source, TensorRoot};
use thiserror::Error;

use crate::interval::{
    self, Boundaries, IntervalError, Outcome, RecordTooShort, Recorded, Span, sequential, state_root_of,
};
use crate::shard::Shard;

/// Outputs are hashed as soon as they have so many bytes together.
const BATCH: u64 = 4 << 20;

/// A recorded interval.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Program and constants.
    pub shard: Arc<Shard>,
    /// What keys every draw, and where the job's steps begin.
    pub lineage: Lineage,
    /// Its steps.
    pub span: Span,
    /// State before the first step.
    pub state: Vec<Tensor>,
    /// Received boundary tensors, as [`Outcome::inputs`].
    pub inputs: Bytes,
}

/// Why an interval could not be repeated.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// There is no usable device.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The device failed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// The record does not fit the program.
    #[error(transparent)]
    Interval(#[from] IntervalError<RecordTooShort>),
    /// No such step or operator.
    #[error("the interval has no such {0}")]
    OutOfRange(&'static str),
}

/// Every root of a repeated interval.
#[derive(Clone, Debug)]
pub struct Roots {
    /// Tensor roots of the state before the first step and after each: one more than steps.
    pub states: Vec<Vec<TensorRoot>>,
    /// For each step, the roots of all operator outputs in program order.
    pub traces: Vec<Vec<TensorRoot>>,
    /// Boundary logs.
    pub logs: BoundaryLists,
}

/// All tensors of one operator of a repeated step.
#[derive(Clone, Debug)]
pub struct OperatorTensors {
    /// Its operands, in order.
    pub operands: Vec<Tensor>,
    /// Its output.
    pub output: Tensor,
}

impl Replay {
    /// Executes the interval as a worker would. Blocks.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn outcome<E: Engine>(&self, engine: E) -> Result<Outcome, ReplayError> {
        let mut executor = self.executor(engine)?;
        self.run(&mut executor, |_, _| Ok(()))
    }

    /// Executes the interval and takes of its last step what a drawn auditor answers with. Blocks.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn answer<E: Engine>(&self, engine: E) -> Result<(Outcome, AuditAnswer), ReplayError> {
        let mut executor = self.executor(engine)?;
        let last = self.span.first_step.saturating_add(self.span.steps.saturating_sub(1));
        let trace = TraceRoots::default();
        // Overwritten before the last step, unless that is the first.
        let mut before = B256::ZERO;
        if self.span.first_step == last {
            before = state_root_of(&self.state);
            executor.watch(Some(trace.watch()));
        }
        let outcome = self.run(&mut executor, |at, executor| {
            if at.saturating_add(1) == last {
                before = state_root_of(&executor.state()?);
                executor.watch(Some(trace.watch()));
            }
            Ok(())
        })?;
        Ok((outcome, AuditAnswer { step: last, preState: before, trace: trace_root(&trace.take()) }))
    }

    /// Executes the interval and keeps what it sent over a boundary, in order of steps and micro-batches, with the
    /// outcome. Blocks.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn sent<E: Engine>(&self, engine: E, over: Boundary) -> Result<(Outcome, Vec<Bytes>), ReplayError> {
        let mut executor = self.executor(engine)?;
        let program = &self.shard.program;
        let recorded = Recorded::new(program, &self.inputs, self.span.first_step);
        let mut boundaries = Kept { recorded, over, sent: Vec::new() };
        let outcome = interval::run(&mut executor, self.span, &sequential(program), &mut boundaries, |_, _| Ok(()))?;
        let mut sent = boundaries.sent;
        sent.sort_by_key(|(place, _)| *place);
        Ok((outcome, sent.into_iter().map(|(_, data)| data).collect()))
    }

    /// Executes the interval and takes the root of everything. Blocks.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn roots<E: Engine>(&self, engine: E) -> Result<Roots, ReplayError> {
        let mut executor = self.executor(engine)?;
        let trace = TraceRoots::default();
        executor.watch(Some(trace.watch()));
        let mut states = vec![tensor_roots(&self.state)];
        let mut traces = Vec::new();
        let outcome = self.run(&mut executor, |_, executor| {
            traces.push(trace.take());
            states.push(tensor_roots(&executor.state()?));
            Ok(())
        })?;
        Ok(Roots { states, traces, logs: outcome.logs })
    }

    /// Executes the interval up to a step (absolute) and returns the tensors of one operator of it. Blocks.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn operator<E: Engine>(&self, engine: E, step: u32, operator: u32) -> Result<OperatorTensors, ReplayError> {
        let op = self.shard.program.operators.get(operator as usize).ok_or(ReplayError::OutOfRange("operator"))?;
        let steps = step.checked_sub(self.span.first_step).filter(|local| *local < self.span.steps);
        let steps = steps.ok_or(ReplayError::OutOfRange("step"))?.saturating_add(1);
        let outputs = op.operands.iter().filter_map(|operand| match operand.source {
            Source::Output(index) => Some(index),
            _ => None,
        });
        let mut executor = self.executor_that_keeps(engine, outputs.chain([operator]))?;
        let mut before = self.state.clone();
        let until = Self { span: Span { steps, ..self.span }, ..self.clone() };
        until.run(&mut executor, |at, executor| {
            if at != step {
                before = executor.state()?;
            }
            Ok(())
        })?;
        let find = |source: Source| {
            Ok(match source {
                Source::Output(index) => executor.observe(index)?,
                Source::State(index) => before.get(index as usize).cloned(),
                Source::Constant(index) => self.shard.constants.get(index as usize).cloned(),
                Source::FromPrevious(_) | Source::FromNext(_) => {
                    let recorded = Recorded::new(&self.shard.program, &self.inputs, self.span.first_step);
                    recorded.tensor(&self.shard.program, source, step)
                }
            })
        };
        let found = |source| find(source).and_then(|tensor| tensor.ok_or(ReplayError::OutOfRange("operand")));
        let operands = op.operands.iter().map(|operand| found(operand.source)).collect::<Result<_, _>>()?;
        Ok(OperatorTensors { operands, output: found(Source::Output(operator))? })
    }

    fn executor<E: Engine>(&self, engine: E) -> Result<StageExecutor<E>, ReplayError> {
        self.executor_that_keeps(engine, [])
    }

    /// One that keeps the outputs of these operators until the next step.
    fn executor_that_keeps<E: Engine>(
        &self,
        engine: E,
        operators: impl IntoIterator<Item = u32>,
    ) -> Result<StageExecutor<E>, ReplayError> {
        let program = self.shard.program.as_ref().clone();
        Ok(StageExecutor::new(engine, program, &self.shard.constants, &self.state, self.lineage, operators)?)
    }

    fn run<E: Engine>(
        &self,
        executor: &mut StageExecutor<E>,
        after_step: impl FnMut(u32, &mut StageExecutor<E>) -> Result<(), ExecuteError>,
    ) -> Result<Outcome, ReplayError> {
        let program = &self.shard.program;
        let schedule = sequential(program);
        let mut boundaries = Recorded::new(program, &self.inputs, self.span.first_step);
        Ok(interval::run(executor, self.span, &schedule, &mut boundaries, after_step)?)
    }
}

/// A record as boundaries, which keeps what is sent over one of them.
struct Kept<'a> {
    recorded: Recorded<'a>,
    over: Boundary,
    /// By step and micro-batch.
    sent: Vec<((u32, u32), Bytes)>,
}

impl Boundaries for Kept<'_> {
    type Error = RecordTooShort;

    fn receive(&mut self, boundary: Boundary, step: u32, micro_batch: u32) -> Result<Bytes, RecordTooShort> {
        self.recorded.receive(boundary, step, micro_batch)
    }

    fn must_wait(&self, boundary: Boundary) -> bool {
        self.recorded.must_wait(boundary)
    }

    fn send(&mut self, boundary: Boundary, step: u32, micro_batch: u32, data: Bytes) -> Result<(), RecordTooShort> {
        if boundary == self.over {
            self.sent.push(((step, micro_batch), data));
        }
        Ok(())
    }
}

/// Roots of all outputs of a step: hashed and dropped as they come, in batches, for together small ones take less.
#[derive(Clone, Default)]
struct TraceRoots(Arc<Mutex<Batch>>);

#[derive(Default)]
struct Batch {
    operators: Vec<u32>,
    outputs: Vec<Tensor>,
    bytes: u64,
    roots: BTreeMap<u32, TensorRoot>,
}

impl TraceRoots {
    fn watch(&self) -> Watch {
        let batch = Arc::clone(&self.0);
        Box::new(move |operator, output| {
            batch.lock().unwrap_or_else(PoisonError::into_inner).add(operator, output);
        })
    }

    /// All since it was asked last, in the program's order.
    fn take(&self) -> Vec<TensorRoot> {
        let mut batch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        batch.hash();
        mem::take(&mut batch.roots).into_values().collect()
    }
}

impl Batch {
    fn add(&mut self, operator: u32, output: Tensor) {
        self.bytes = self.bytes.saturating_add(output.ty().byte_len());
        self.operators.push(operator);
        self.outputs.push(output);
        if self.bytes >= BATCH {
            self.hash();
        }
    }

    fn hash(&mut self) {
        self.bytes = 0;
        self.roots.extend(self.operators.drain(..).zip(tensor_roots(&self.outputs)));
        self.outputs.clear();
    }
}
