//! Repeats a recorded interval: what auditors compare with, and what a worker signs when asked about its steps.

use std::sync::Arc;

use bytes::Bytes;
use tensorlink_graph::engine::{Engine, EngineError};
use tensorlink_graph::executor::{ExecuteError, StageExecutor};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::{BoundaryLists, Edge, tensor_roots, trace_root};
use tensorlink_types::abi::AuditAnswer;
use tensorlink_types::{Lineage, Source, TensorRoot};
use thiserror::Error;

use crate::interval::{
    self, Boundary, IntervalError, Outcome, RecordTooShort, Recorded, Span, sequential, state_root_of,
};
use crate::shard::Shard;

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
        executor.set_trace(self.span.first_step == last);
        let mut before = state_root_of(&self.state);
        let mut trace = None;
        let outcome = self.run(&mut executor, |at, executor| {
            if at == last {
                trace = Some(trace_root(&tensor_roots(&traced(executor)?)));
            } else if at.saturating_add(1) == last {
                before = state_root_of(&executor.state()?);
                executor.set_trace(true);
            }
            Ok(())
        })?;
        let trace = trace.ok_or(ReplayError::OutOfRange("step"))?;
        Ok((outcome, AuditAnswer { step: last, preState: before, trace }))
    }

    /// Executes the interval and keeps what it sent over an edge, in order of steps and micro-batches, with the outcome. Blocks.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn sent<E: Engine>(&self, engine: E, over: Edge) -> Result<(Outcome, Vec<Bytes>), ReplayError> {
        let mut executor = self.executor(engine)?;
        let program = &self.shard.program;
        let recorded = Recorded::new(program, &self.inputs, self.span.first_step);
        let mut boundary = Kept { recorded, over, sent: Vec::new() };
        let outcome = interval::run(&mut executor, self.span, &sequential(program), &mut boundary, |_, _| Ok(()))?;
        let mut sent = boundary.sent;
        sent.sort_by_key(|(place, _)| *place);
        Ok((outcome, sent.into_iter().map(|(_, data)| data).collect()))
    }

    /// Executes the interval and takes the root of everything. Blocks.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn roots<E: Engine>(&self, engine: E) -> Result<Roots, ReplayError> {
        let mut executor = self.executor(engine)?;
        executor.set_trace(true);
        let mut states = vec![tensor_roots(&self.state)];
        let mut traces = Vec::new();
        let outcome = self.run(&mut executor, |_, executor| {
            traces.push(tensor_roots(&traced(executor)?));
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
        let mut executor = self.executor(engine)?;
        executor.set_trace(true);
        let mut before = self.state.clone();
        let mut found = None;
        let until = Self { span: Span { steps, ..self.span }, ..self.clone() };
        until.run(&mut executor, |at, executor| {
            if at == step {
                found = Some(traced(executor)?);
            } else {
                before = executor.state()?;
            }
            Ok(())
        })?;
        let outputs = found.ok_or(ReplayError::OutOfRange("step"))?;
        let received = |source: Source| {
            let recorded = Recorded::new(&self.shard.program, &self.inputs, self.span.first_step);
            recorded.tensor(&self.shard.program, source, step)
        };
        let find = |source: Source| match source {
            Source::Output(index) => outputs.get(index as usize).cloned(),
            Source::State(index) => before.get(index as usize).cloned(),
            Source::Constant(index) => self.shard.constants.get(index as usize).cloned(),
            Source::FromPrevious(_) | Source::FromNext(_) => received(source),
        };
        let operands = op.operands.iter().map(|operand| find(operand.source)).collect::<Option<_>>();
        let output = outputs.get(operator as usize).cloned();
        match (operands, output) {
            (Some(operands), Some(output)) => Ok(OperatorTensors { operands, output }),
            _ => Err(ReplayError::OutOfRange("operand")),
        }
    }

    fn executor<E: Engine>(&self, engine: E) -> Result<StageExecutor<E>, ReplayError> {
        let program = self.shard.program.as_ref().clone();
        Ok(StageExecutor::new(engine, program, &self.shard.constants, &self.state, self.lineage, [])?)
    }

    fn run<E: Engine>(
        &self,
        executor: &mut StageExecutor<E>,
        after_step: impl FnMut(u32, &mut StageExecutor<E>) -> Result<(), ExecuteError>,
    ) -> Result<Outcome, ReplayError> {
        let program = &self.shard.program;
        let schedule = sequential(program);
        let mut boundary = Recorded::new(program, &self.inputs, self.span.first_step);
        Ok(interval::run(executor, self.span, &schedule, &mut boundary, after_step)?)
    }
}

/// A record as a boundary that keeps what is sent over one edge.
struct Kept<'a> {
    recorded: Recorded<'a>,
    over: Edge,
    /// By step and micro-batch.
    sent: Vec<((u32, u32), Bytes)>,
}

impl Boundary for Kept<'_> {
    type Error = RecordTooShort;

    fn receive(&mut self, edge: Edge, step: u32, micro_batch: u32) -> Result<Bytes, RecordTooShort> {
        self.recorded.receive(edge, step, micro_batch)
    }

    fn must_wait(&self, edge: Edge) -> bool {
        self.recorded.must_wait(edge)
    }

    fn send(&mut self, edge: Edge, step: u32, micro_batch: u32, data: Bytes) -> Result<(), RecordTooShort> {
        if edge == self.over {
            self.sent.push(((step, micro_batch), data));
        }
        Ok(())
    }
}

/// All outputs of the step that has just been traced, on the host.
fn traced<E: Engine>(executor: &StageExecutor<E>) -> Result<Vec<Tensor>, ExecuteError> {
    let outputs = executor.trace().ok_or_else(|| ExecuteError::Order("trace".to_owned()))?;
    let export = |tensor| executor.engine().export(tensor);
    let transfer = |source| ExecuteError::Transfer { what: "a traced output", source };
    outputs.into_iter().map(|tensor| export(tensor).map_err(transfer)).collect()
}
