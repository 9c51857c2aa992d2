//! Executes an interval of a stage, step by step, whoever its neighbours are: peers on a stream (worker) or a file of
//! what was received (auditor). One code path, so that an auditor computes what the worker did.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tensorlink_num::{Tensor, TensorError};
use tensorlink_program::check::forward_only;
use tensorlink_program::engine::Engine;
use tensorlink_program::executor::{ExecuteError, StageExecutor};
use tensorlink_proof::commit::logs::BoundaryLists;
use tensorlink_proof::commit::{Boundary, LogBuilder, LogError, state_root, tensor_roots};
use tensorlink_proof::merkle::list_root;
use tensorlink_types::{B256, Program, Segment, Source, TensorType};
use thiserror::Error;

/// Tensors that are hashed between two looks at the boundaries: enough to fill the lanes of the hash, few enough that
/// no neighbour waits for it.
const BATCH: usize = 4;

/// One unit of work of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Forward pass of a micro-batch.
    Forward(u32),
    /// Backward pass of a micro-batch.
    Backward(u32),
}

/// A stage's boundaries, with the neighbours behind them. All tensors are canonical bytes without padding.
pub trait Boundaries {
    /// What can go wrong at a boundary.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Waits for a tensor from the previous (`Boundary::FromPrevious`) or next stage (`Boundary::FromNext`).
    fn receive(&mut self, boundary: Boundary, step: u32, micro_batch: u32) -> Result<Bytes, Self::Error>;

    /// Whether `receive` would have to wait now. Who does not know says no.
    fn must_wait(&self, boundary: Boundary) -> bool;

    /// Hands a tensor to the next (`Boundary::ToNext`) or previous stage (`Boundary::ToPrevious`).
    fn send(&mut self, boundary: Boundary, step: u32, micro_batch: u32, data: Bytes) -> Result<(), Self::Error>;
}

/// Where an interval stands in its job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// First step, absolute.
    pub first_step: u32,
    /// Number of steps.
    pub steps: u32,
}

/// Result of an interval.
#[derive(Debug)]
pub struct Outcome {
    /// State after the last step.
    pub state: Vec<Tensor>,
    /// Its root (rule C-6).
    pub state_root: B256,
    /// Boundary logs (rule C-8).
    pub logs: BoundaryLists,
    /// Received tensors: for each step, first all from the previous stage, then all from the next.
    pub inputs: Vec<u8>,
    /// Time spent hashing.
    pub hashing: Duration,
}

/// Why an interval could not be finished.
#[derive(Debug, Error)]
pub enum IntervalError<B: std::error::Error> {
    /// A boundary failed.
    #[error(transparent)]
    Boundary(B),
    /// The program could not be executed: the device failed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// What came over a boundary is not a tensor of the registered type.
    #[error("step {step}, micro-batch {micro_batch}: {source}")]
    Tensor {
        /// Absolute step.
        step: u32,
        /// Micro-batch.
        micro_batch: u32,
        /// What is wrong with it.
        source: TensorError,
    },
    /// The logs do not add up.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Runs the steps of `span` in the order of `schedule`, calling `after_step` with the executor after each.
///
/// # Errors
/// [`IntervalError`]; the executor is then in the middle of a step and has to be made anew.
pub fn run<E: Engine, B: Boundaries>(
    executor: &mut StageExecutor<E>,
    span: Span,
    schedule: &[Work],
    boundaries: &mut B,
    mut after_step: impl FnMut(u32, &mut StageExecutor<E>) -> Result<(), ExecuteError>,
) -> Result<Outcome, IntervalError<B::Error>> {
    let mut logged = Logged {
        logs: LogBuilder::new(executor.program(), span.steps)?,
        hashing: Duration::ZERO,
        first_step: span.first_step,
        boundaries,
        places: Vec::new(),
        tensors: Vec::new(),
        overdue: 0,
    };
    let from_previous = executor.program().from_previous.clone();
    let from_next = executor.program().from_next.clone();
    let forward_only = forward_only(executor.program());
    let mut inputs = Vec::new();
    for step in span.first_step..span.first_step.saturating_add(span.steps) {
        let mut gradients = Vec::new();
        executor.begin_step(step)?;
        for work in schedule {
            match *work {
                Work::Forward(mb) => {
                    let input = logged.receive(
                        Boundary::FromPrevious,
                        (step, mb),
                        from_previous.get(mb as usize),
                        &mut inputs,
                    )?;
                    let from_next = from_next.get(mb as usize).filter(|_| forward_only);
                    let controls = logged.receive(Boundary::FromNext, (step, mb), from_next, &mut gradients)?;
                    let output = executor.forward_between(mb, input.as_ref(), controls.as_ref())?;
                    logged.send(Boundary::ToNext, (step, mb), output)?;
                    executor.finish_pass()?;
                }
                Work::Backward(mb) => {
                    let input =
                        logged.receive(Boundary::FromNext, (step, mb), from_next.get(mb as usize), &mut gradients)?;
                    let output = executor.backward(mb, input.as_ref())?;
                    logged.send(Boundary::ToPrevious, (step, mb), output)?;
                    executor.finish_pass()?;
                }
            }
        }
        executor.update()?;
        logged.end_step()?;
        inputs.append(&mut gradients);
        after_step(step, executor)?;
    }
    logged.log(usize::MAX)?;
    let state = executor.state()?;
    let start = Instant::now();
    let state_root = state_root_of(&state);
    let hashing = logged.hashing + start.elapsed();
    Ok(Outcome { state, state_root, inputs, logs: logged.logs.finish()?, hashing })
}

/// Root of a state (rule C-6).
pub fn state_root_of(state: &[Tensor]) -> B256 {
    state_root(&tensor_roots(state))
}

/// The boundaries during an interval: passes tensors through and logs them.
struct Logged<'a, B> {
    logs: LogBuilder,
    hashing: Duration,
    first_step: u32,
    boundaries: &'a mut B,
    /// What crossed and is not logged yet: boundary, step within the interval and micro-batch.
    places: Vec<(Boundary, u32, u32)>,
    tensors: Vec<Tensor>,
    /// How many of them are of steps that are over.
    overdue: usize,
}

impl<B: Boundaries> Logged<'_, B> {
    fn receive(
        &mut self,
        boundary: Boundary,
        (step, micro_batch): (u32, u32),
        ty: Option<&TensorType>,
        kept: &mut Vec<u8>,
    ) -> Result<Option<Tensor>, IntervalError<B::Error>> {
        let Some(ty) = ty else { return Ok(None) };
        // Hash while there is nothing else to do.
        while !self.places.is_empty() && self.boundaries.must_wait(boundary) {
            self.log(BATCH)?;
        }
        let data = self.boundaries.receive(boundary, step, micro_batch).map_err(IntervalError::Boundary)?;
        let tensor = Tensor::from_bytes(ty.clone(), &data).map_err(|source| IntervalError::Tensor {
            step,
            micro_batch,
            source,
        })?;
        kept.extend_from_slice(&data);
        self.keep(boundary, (step, micro_batch), tensor.clone());
        Ok(Some(tensor))
    }

    fn send(
        &mut self,
        boundary: Boundary,
        (step, micro_batch): (u32, u32),
        output: Option<Tensor>,
    ) -> Result<(), IntervalError<B::Error>> {
        let Some(tensor) = output else { return Ok(()) };
        self.boundaries.send(boundary, step, micro_batch, tensor.to_bytes().into()).map_err(IntervalError::Boundary)?;
        self.keep(boundary, (step, micro_batch), tensor);
        Ok(())
    }

    fn keep(&mut self, boundary: Boundary, (step, micro_batch): (u32, u32), tensor: Tensor) {
        self.places.push((boundary, step.saturating_sub(self.first_step), micro_batch));
        self.tensors.push(tensor);
    }

    /// Logs at the latest a step after its tensors crossed, which bounds what is kept.
    fn end_step(&mut self) -> Result<(), LogError> {
        if self.overdue > 0 {
            self.log(self.overdue)?;
        }
        self.overdue = self.places.len();
        Ok(())
    }

    /// Logs the oldest `most` tensors that are not logged yet.
    fn log(&mut self, most: usize) -> Result<(), LogError> {
        let start = Instant::now();
        let most = most.min(self.places.len());
        let tensors: Vec<Tensor> = self.tensors.drain(..most).collect();
        for ((boundary, step, micro_batch), root) in self.places.drain(..most).zip(tensor_roots(&tensors)) {
            self.logs.record(boundary, step, micro_batch, root)?;
        }
        self.overdue = self.overdue.saturating_sub(most);
        self.hashing += start.elapsed();
        Ok(())
    }
}

/// Bytes of the received tensors of `steps` steps. Saturates.
pub fn inputs_len(program: &Program, steps: u32) -> u64 {
    let received = program.from_previous.iter().chain(&program.from_next).map(TensorType::byte_len);
    received.fold(0, u64::saturating_add).saturating_mul(steps.into())
}

/// The received tensors of an interval as boundaries: an auditor's stand-in for the neighbours. What is sent is
/// dropped; its root is in the logs.
#[derive(Clone, Debug)]
pub struct Recorded<'a> {
    inputs: &'a Bytes,
    first_step: u32,
    /// Bytes of a step.
    step: u64,
    /// Where in a step a micro-batch's tensor from the previous stage lies, and how long it is.
    from_previous: Vec<(u64, u64)>,
    /// The same of the next stage.
    from_next: Vec<(u64, u64)>,
}

/// The record is shorter than its steps need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("the record of received tensors ends before step {0}, micro-batch {1}")]
pub struct RecordTooShort(u32, u32);

impl<'a> Recorded<'a> {
    /// Reads from the inputs of an interval that begins at `first_step`.
    pub fn new(program: &Program, inputs: &'a Bytes, first_step: u32) -> Self {
        let mut step = 0;
        let mut places = |types: &[TensorType]| {
            let place = |ty: &TensorType| {
                let start = step;
                step += ty.byte_len();
                (start, ty.byte_len())
            };
            types.iter().map(place).collect()
        };
        let (from_previous, from_next) = (places(&program.from_previous), places(&program.from_next));
        Self { inputs, first_step, step, from_previous, from_next }
    }

    fn slice(&self, boundary: Boundary, step: u32, micro_batch: u32) -> Option<Bytes> {
        let places = if boundary == Boundary::FromPrevious { &self.from_previous } else { &self.from_next };
        let (start, len) = places.get(micro_batch as usize)?;
        let start = u64::from(step.checked_sub(self.first_step)?) * self.step + start;
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(start + len).ok()?);
        (end <= self.inputs.len()).then(|| self.inputs.slice(start..end))
    }

    /// The received tensor that an operand of a step (absolute) names; none for other operands or beyond the record.
    pub fn tensor(&self, program: &Program, source: Source, step: u32) -> Option<Tensor> {
        let (boundary, micro_batch, types) = match source {
            Source::FromPrevious(micro_batch) => (Boundary::FromPrevious, micro_batch, &program.from_previous),
            Source::FromNext(micro_batch) => (Boundary::FromNext, micro_batch, &program.from_next),
            _ => return None,
        };
        Tensor::from_bytes(types.get(micro_batch as usize)?.clone(), &self.slice(boundary, step, micro_batch)?).ok()
    }
}

impl Boundaries for Recorded<'_> {
    type Error = RecordTooShort;

    fn receive(&mut self, boundary: Boundary, step: u32, micro_batch: u32) -> Result<Bytes, RecordTooShort> {
        self.slice(boundary, step, micro_batch).ok_or(RecordTooShort(step, micro_batch))
    }

    fn must_wait(&self, _: Boundary) -> bool {
        false
    }

    fn send(&mut self, _: Boundary, _: u32, _: u32, _: Bytes) -> Result<(), RecordTooShort> {
        Ok(())
    }
}

/// Roots of the logs of what the record says was received, from the previous stage and from the next: zero where there
/// is none (rule C-8). No roots if the record is not just the tensors of these steps. Hashes everything.
pub fn received_roots(program: &Program, inputs: &Bytes, span: Span) -> Option<(B256, B256)> {
    if inputs.len() as u64 != inputs_len(program, span.steps) {
        return None;
    }
    let recorded = Recorded::new(program, inputs, span.first_step);
    let root = |boundary, types: &[TensorType]| {
        if types.is_empty() {
            return Some(B256::ZERO);
        }
        let mut roots = Vec::new();
        for step in span.first_step..span.first_step.saturating_add(span.steps) {
            let tensor = |(mb, ty): (u32, &TensorType)| {
                Tensor::from_bytes(ty.clone(), &recorded.slice(boundary, step, mb)?).ok()
            };
            let tensors: Vec<Tensor> = (0..).zip(types).map(tensor).collect::<Option<_>>()?;
            roots.extend(tensor_roots(&tensors));
        }
        Some(list_root(roots))
    };
    Some((root(Boundary::FromPrevious, &program.from_previous)?, root(Boundary::FromNext, &program.from_next)?))
}

/// The passes of a program in its own order: the schedule of who need not wait for anybody.
pub fn sequential(program: &Program) -> Vec<Work> {
    let pass = |segment: &Segment| match *segment {
        Segment::Forward { micro_batch, .. } => Some(Work::Forward(micro_batch)),
        Segment::Backward { micro_batch, .. } => Some(Work::Backward(micro_batch)),
        Segment::Prepare { .. } | Segment::Update { .. } => None,
    };
    program.segments.iter().filter_map(pass).collect()
}
