//! Runs a stage's program on an engine, segment by segment, in whatever order a pipeline needs.
//!
//! A step is [`StageExecutor::begin_step`], then [`forward`](StageExecutor::forward) and
//! [`backward`](StageExecutor::backward) of every micro-batch in any order that keeps forward before backward of each,
//! has the backward passes in order and ends a round before the next one, then [`update`](StageExecutor::update). The
//! state changes in `update` alone: after an engine's failure before it, begin the step again; after one within it,
//! with another executor. Outputs are dropped when their last reader has run, unless they are observed; a tensor of the
//! state, when its last reader has run and the next one is there: of a state there are never two at once.

mod error;
mod lifetimes;
mod run;
mod step;

use std::collections::BTreeSet;

use tensorlink_num::Tensor;
use tensorlink_types::{Lineage, Segment, Source, TensorType};

pub use self::error::ExecuteError;
use self::lifetimes::Lifetimes;
pub use self::lifetimes::peak;
use self::step::{Rest, Step, release};
use crate::check::{CheckedProgram, forward_only};
use crate::engine::{Engine, StepContext};
use crate::fused::Fusions;
use crate::watch::Watch;

/// Result of one pass: what goes to the neighbour, on the host, ready to be hashed and sent.
pub type Passed = Option<Tensor>;

/// A stage's program, its state, and the step in progress.
pub struct StageExecutor<E: Engine> {
    engine: E,
    program: CheckedProgram,
    lineage: Lineage,
    constants: Vec<E::Tensor>,
    state: Vec<E::Tensor>,
    /// Whether an update began, and did not end.
    torn: bool,
    lifetimes: Lifetimes,
    observed: BTreeSet<u32>,
    fusions: Fusions,
    watch: Option<Watch>,
    step: Option<Step<E::Tensor>>,
}

impl<E: Engine> StageExecutor<E> {
    /// Moves constants and state to the engine's device. `observed` outputs are kept until the next step begins.
    ///
    /// # Errors
    /// [`ExecuteError::Count`] or [`ExecuteError::Type`] if the tensors are not those of the program;
    /// [`ExecuteError::Transfer`] if the device fails.
    pub fn new(
        engine: E,
        program: CheckedProgram,
        constants: &[Tensor],
        state: &[Tensor],
        lineage: impl Into<Lineage>,
        observed: impl IntoIterator<Item = u32>,
    ) -> Result<Self, ExecuteError> {
        let constants = import(&engine, "constants", program.constants.iter().map(|c| (&c.name, &c.ty)), constants)?;
        let state = import(&engine, "state tensors", program.state.iter().map(|s| (&s.name, &s.ty)), state)?;
        Self::on_device(engine, program, constants, state, lineage, observed)
    }

    /// As [`Self::new`], with constants and state that lie on the device already, of the types that the program says.
    ///
    /// # Errors
    /// [`ExecuteError::Count`].
    pub fn on_device(
        engine: E,
        program: CheckedProgram,
        constants: Vec<E::Tensor>,
        state: Vec<E::Tensor>,
        lineage: impl Into<Lineage>,
        observed: impl IntoIterator<Item = u32>,
    ) -> Result<Self, ExecuteError> {
        let counts = [
            ("constants", program.constants.len(), constants.len()),
            ("state tensors", program.state.len(), state.len()),
        ];
        for (what, expected, actual) in counts {
            if expected != actual {
                return Err(ExecuteError::Count { what, expected, actual });
            }
        }
        let lifetimes = Lifetimes::of(&program);
        let observed: BTreeSet<u32> = observed.into_iter().collect();
        let kept = program.state.iter().map(|slot| slot.producer);
        let wanted = kept.chain(program.to_next.iter().chain(&program.to_previous).chain(&observed).copied());
        let fusions = Fusions::of_program(&program, wanted.map(Source::Output));
        let lineage = lineage.into();
        let (torn, watch, step) = (false, None, None);
        Ok(Self { engine, program, lineage, constants, state, torn, lifetimes, observed, fusions, watch, step })
    }

    /// The program.
    pub const fn program(&self) -> &CheckedProgram {
        &self.program
    }

    /// The engine.
    pub const fn engine(&self) -> &E {
        &self.engine
    }

    /// Has every operator's output of the steps that begin from now on seen, or none. What is seen is computed operator
    /// by operator.
    pub fn watch(&mut self, watch: Option<Watch>) {
        self.watch = watch;
    }

    /// Begins a step of the job, counted from 0: forgets the last one and casts the weights.
    ///
    /// # Errors
    /// [`ExecuteError::Engine`]; [`ExecuteError::Torn`].
    pub fn begin_step(&mut self, step: u32) -> Result<(), ExecuteError> {
        if self.torn {
            return Err(ExecuteError::Torn);
        }
        let micro_batches = self.program.micro_batches as usize;
        self.step = Some(Step {
            context: StepContext::new(self.lineage, step),
            outputs: vec![None; self.program.operators.len()],
            pending: self.lifetimes.readers.clone(),
            from_previous: vec![None; micro_batches],
            from_next: vec![None; micro_batches],
            done: vec![false; self.program.segments.len()],
            rest: None,
        });
        match self.program.segments.iter().position(|s| matches!(s, Segment::Prepare { .. })) {
            Some(segment) => self.run(segment),
            None => Ok(()),
        }
    }

    /// Runs the forward pass of a micro-batch on what the previous stage sent, if there is one, until there is what the
    /// next stage waits for. What is left of it runs in [`Self::finish_pass`].
    ///
    /// # Errors
    /// [`ExecuteError::Order`], [`ExecuteError::Boundary`], [`ExecuteError::Type`], or the engine's.
    pub fn forward(&mut self, micro_batch: u32, input: Option<&Tensor>) -> Result<Passed, ExecuteError> {
        self.forward_between(micro_batch, input, None)
    }

    /// As [`Self::forward`], with what the next stage sent: a program without backward passes takes it here.
    ///
    /// # Errors
    /// As [`Self::forward`].
    pub fn forward_between(
        &mut self,
        micro_batch: u32,
        input: Option<&Tensor>,
        from_next: Option<&Tensor>,
    ) -> Result<Passed, ExecuteError> {
        self.finish_pass()?;
        let ty = self.program.from_previous.get(micro_batch as usize).cloned();
        let input = self.boundary(micro_batch, "previous", ty.as_ref(), input)?;
        let ty = self.program.from_next.get(micro_batch as usize).filter(|_| forward_only(&self.program)).cloned();
        let from_next = self.boundary(micro_batch, "next", ty.as_ref(), from_next)?;
        let name = || format!("forward {micro_batch}");
        let index = self.find(|s| matches!(*s, Segment::Forward { micro_batch: mb, .. } if mb == micro_batch), name)?;
        let earlier = self.program.segments.iter().take(index).rposition(|s| matches!(s, Segment::Backward { .. }));
        if earlier.is_some_and(|earlier| !self.is_done(earlier)) {
            return Err(ExecuteError::Order(name()));
        }
        if let Some(slot) = self.step.as_mut().and_then(|step| step.from_previous.get_mut(micro_batch as usize)) {
            *slot = input;
        }
        if let Some(slot) = self.step.as_mut().and_then(|step| step.from_next.get_mut(micro_batch as usize)) {
            *slot = from_next;
        }
        let output = self.program.to_next.get(micro_batch as usize).copied();
        self.pass(index, output, None)
    }

    /// Runs the backward pass of a micro-batch on what the next stage sent, if there is one, until there is what the
    /// previous stage waits for. What is left of it runs in [`Self::finish_pass`].
    ///
    /// # Errors
    /// As [`Self::forward`].
    pub fn backward(&mut self, micro_batch: u32, gradient: Option<&Tensor>) -> Result<Passed, ExecuteError> {
        self.finish_pass()?;
        let ty = self.program.from_next.get(micro_batch as usize).cloned();
        let gradient = self.boundary(micro_batch, "next", ty.as_ref(), gradient)?;
        let name = || format!("backward {micro_batch}");
        let before = |s: &Segment| match *s {
            Segment::Forward { micro_batch: mb, .. } => mb == micro_batch,
            Segment::Backward { micro_batch: mb, .. } => mb < micro_batch,
            _ => false,
        };
        self.finished(before, name)?;
        let index =
            self.find(|s| matches!(*s, Segment::Backward { micro_batch: mb, .. } if mb == micro_batch), name)?;
        if let Some(slot) = self.step.as_mut().and_then(|step| step.from_next.get_mut(micro_batch as usize)) {
            *slot = gradient;
        }
        let output = self.program.to_previous.get(micro_batch as usize).copied();
        self.pass(index, output, Some(micro_batch))
    }

    /// Runs what is left of the pass before, if anything is. Whatever runs next in the step does so, too; who calls it
    /// earlier uses the time in which the neighbours' tensors are on their way.
    ///
    /// # Errors
    /// The engine's.
    pub fn finish_pass(&mut self) -> Result<(), ExecuteError> {
        let Some(Rest { segment, operators, over }) = self.step.as_mut().and_then(|step| step.rest.take()) else {
            return Ok(());
        };
        self.operate(operators, None)?;
        if let Some(step) = self.step.as_mut() {
            if let Some(done) = step.done.get_mut(segment) {
                *done = true;
            }
            for slots in [&mut step.from_previous, &mut step.from_next] {
                let slot = over.and_then(|micro_batch| slots.get_mut(micro_batch as usize));
                if let Some(slot) = slot {
                    *slot = None;
                }
            }
        }
        Ok(())
    }

    /// Runs the optimiser, if there is one; the state becomes that after the step.
    ///
    /// # Errors
    /// [`ExecuteError::Order`] before every pass has run, or the engine's.
    pub fn update(&mut self) -> Result<(), ExecuteError> {
        self.finish_pass()?;
        let name = || "update".to_owned();
        self.finished(|s| matches!(s, Segment::Forward { .. } | Segment::Backward { .. }), name)?;
        let update = |s: &Segment| matches!(s, Segment::Update { .. });
        // A program that only passes forward keeps its state.
        if self.program.segments.iter().any(update) {
            let index = self.find(update, name)?;
            self.torn = true;
            self.run(index)?;
        }
        let step = self.step.as_mut().ok_or_else(|| ExecuteError::Order(name()))?;
        let next = self.program.state.iter().map(|slot| step.outputs.get(slot.producer as usize).cloned().flatten());
        self.state = next.collect::<Option<_>>().ok_or_else(|| ExecuteError::Order(name()))?;
        for slot in &self.program.state {
            release(step, slot.producer, &self.observed);
        }
        self.torn = false;
        Ok(())
    }

    /// The state: before the first step as given, then as the last [`Self::update`] left it.
    ///
    /// # Errors
    /// [`ExecuteError::Transfer`].
    pub fn state(&self) -> Result<Vec<Tensor>, ExecuteError> {
        self.state.iter().map(|tensor| self.export("state", tensor)).collect()
    }

    /// One tensor of the state, if the program has so many.
    ///
    /// # Errors
    /// [`ExecuteError::Transfer`].
    pub fn state_tensor(&self, slot: u32) -> Result<Option<Tensor>, ExecuteError> {
        self.state.get(slot as usize).map(|tensor| self.export("state", tensor)).transpose()
    }

    /// Output of an observed operator of the current step, once it has run.
    ///
    /// # Errors
    /// [`ExecuteError::Transfer`].
    pub fn observe(&self, operator: u32) -> Result<Option<Tensor>, ExecuteError> {
        let output = self.step.as_ref().and_then(|step| step.outputs.get(operator as usize)).and_then(Option::as_ref);
        output.map(|tensor| self.export("observed output", tensor)).transpose()
    }
}

/// Checks and moves the tensors of a program.
///
/// # Errors
/// Too few of them or too many, one of another type, and what the engine refuses.
pub fn import<'a, E: Engine>(
    engine: &E,
    what: &'static str,
    slots: impl ExactSizeIterator<Item = (&'a String, &'a TensorType)>,
    tensors: &[Tensor],
) -> Result<Vec<E::Tensor>, ExecuteError> {
    let (expected, actual) = (slots.len(), tensors.len());
    if expected != actual {
        return Err(ExecuteError::Count { what, expected, actual });
    }
    let one = |((name, ty), tensor): ((&String, &TensorType), &Tensor)| {
        if ty != tensor.ty() {
            let (expected, actual) = (ty.clone(), tensor.ty().clone());
            return Err(ExecuteError::Type { what: name.clone(), expected, actual });
        }
        engine.import(tensor).map_err(|source| ExecuteError::Transfer { what, source })
    };
    slots.zip(tensors).map(one).collect()
}
