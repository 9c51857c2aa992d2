//! Operators run, and what passes between neighbours.

use std::ops::Range;

use tensorlink_num::Tensor;
use tensorlink_types::{Segment, Source, TensorType};

use super::step::{Rest, release};
use super::{ExecuteError, Passed, StageExecutor};
use crate::engine::Engine;
use crate::fused::Fusions;

impl<E: Engine> StageExecutor<E> {
    pub(super) fn export(&self, what: &'static str, tensor: &E::Tensor) -> Result<Tensor, ExecuteError> {
        self.engine.export(tensor).map_err(|source| ExecuteError::Transfer { what, source })
    }

    pub(super) fn boundary(
        &self,
        micro_batch: u32,
        neighbour: &'static str,
        expected: Option<&TensorType>,
        given: Option<&Tensor>,
    ) -> Result<Option<E::Tensor>, ExecuteError> {
        let problem = |problem| Err(ExecuteError::Boundary { micro_batch, neighbour, problem });
        match (expected, given) {
            (None, None) => Ok(None),
            (Some(_), None) => problem("missing"),
            (None, Some(_)) => problem("not used by this stage"),
            (Some(expected), Some(tensor)) if expected != tensor.ty() => Err(ExecuteError::Type {
                what: format!("the tensor from the {neighbour} stage"),
                expected: expected.clone(),
                actual: tensor.ty().clone(),
            }),
            (Some(_), Some(tensor)) => {
                let imported = self.engine.import(tensor);
                imported.map(Some).map_err(|source| ExecuteError::Transfer { what: "a boundary tensor", source })
            }
        }
    }

    /// The segment to run: it exists, and has not run in this step.
    pub(super) fn find(
        &self,
        wanted: impl Fn(&Segment) -> bool,
        name: impl Fn() -> String,
    ) -> Result<usize, ExecuteError> {
        let index = self.program.segments.iter().position(wanted);
        let is_fresh = |index: &usize| self.step.is_some() && !self.is_done(*index);
        index.filter(is_fresh).ok_or_else(|| ExecuteError::Order(name()))
    }

    /// Whether a segment has run in this step.
    pub(super) fn is_done(&self, segment: usize) -> bool {
        self.step.as_ref().and_then(|step| step.done.get(segment)).is_some_and(|done| *done)
    }

    /// Requires that every segment of a kind has run.
    pub(super) fn finished(
        &self,
        wanted: impl Fn(&Segment) -> bool,
        name: impl Fn() -> String,
    ) -> Result<(), ExecuteError> {
        let done = self.step.as_ref().map_or(&[][..], |step| &step.done);
        let ready = self.program.segments.iter().zip(done).all(|(segment, done)| *done || !wanted(segment));
        if ready && !done.is_empty() { Ok(()) } else { Err(ExecuteError::Order(name())) }
    }

    pub(super) fn run(&mut self, segment: usize) -> Result<(), ExecuteError> {
        self.pass(segment, None, None)?;
        self.finish_pass()
    }

    /// Runs a segment as far as `output`, which goes to a neighbour; the rest is left.
    pub(super) fn pass(
        &mut self,
        segment: usize,
        output: Option<u32>,
        over: Option<u32>,
    ) -> Result<Passed, ExecuteError> {
        let order = || ExecuteError::Order(format!("segment {segment}"));
        let range = self.program.segments.get(segment).ok_or_else(order)?.operators().clone();
        let next = match output {
            Some(_) => self.operate(range.clone(), output)?,
            None => range.start,
        };
        let step = self.step.as_mut().ok_or_else(order)?;
        step.rest = Some(Rest { segment, operators: next..range.end, over });
        output.map(|index| self.hand_over(index)).transpose()
    }

    /// Runs operators until there is the output of `until`, or all of them. Returns the one to go on with.
    pub(super) fn operate(&mut self, operators: Range<u32>, until: Option<u32>) -> Result<u32, ExecuteError> {
        let order = || ExecuteError::Order(format!("operators {operators:?}"));
        let step = self.step.as_mut().ok_or_else(order)?;
        // The outputs within what is computed as one are seen, too.
        let none = Fusions::default();
        let fusions = if self.watch.is_some() { &none } else { &self.fusions };
        for index in operators.clone() {
            let name = || self.program.names.get(index as usize).cloned().unwrap_or_default();
            let Some(turn) = fusions.turn(&self.program.operators, index as usize) else { continue };
            let find = |source: Source| match source {
                Source::Output(i) => step.outputs.get(i as usize).and_then(Option::as_ref),
                Source::State(i) => self.state.get(i as usize),
                Source::Constant(i) => self.constants.get(i as usize),
                Source::FromPrevious(i) => step.from_previous.get(i as usize).and_then(Option::as_ref),
                Source::FromNext(i) => step.from_next.get(i as usize).and_then(Option::as_ref),
            };
            let outputs = turn.take(&self.engine, find, &step.context).ok_or_else(|| ExecuteError::Order(name()))?;
            for (place, output) in outputs.map_err(|source| ExecuteError::Engine { operator: name(), source })? {
                if let (Some(watch), Ok(place)) = (&mut self.watch, u32::try_from(place)) {
                    let seen = self.engine.export(&output);
                    watch(place, seen.map_err(|source| ExecuteError::Transfer { what: "a watched output", source })?);
                }
                if let Some(slot) = step.outputs.get_mut(place) {
                    *slot = Some(output);
                }
            }
            for done in fusions.done(index as usize) {
                for operand in self.program.operators.get(done).into_iter().flat_map(|operator| &operator.operands) {
                    if let Source::Output(i) = operand.source {
                        release(step, i, &self.observed);
                    }
                }
                for (slot, producer) in self.lifetimes.replaced_after(done) {
                    let next = step.outputs.get(*producer as usize).and_then(Option::as_ref);
                    if let (Some(current), Some(next)) = (self.state.get_mut(*slot), next) {
                        *current = next.clone();
                    }
                }
            }
            if until.and_then(|until| step.outputs.get(until as usize)).is_some_and(Option::is_some) {
                return Ok(index.saturating_add(1));
            }
        }
        Ok(operators.end)
    }

    /// Exports an output for a neighbour, its last reader unless the program reads it too.
    fn hand_over(&mut self, index: u32) -> Result<Tensor, ExecuteError> {
        let order = || ExecuteError::Order(format!("operator {index}"));
        let step = self.step.as_mut().ok_or_else(order)?;
        let output = step.outputs.get(index as usize).and_then(Option::as_ref).ok_or_else(order)?;
        let tensor = self
            .engine
            .export(output)
            .map_err(|source| ExecuteError::Transfer { what: "a boundary tensor", source })?;
        release(step, index, &self.observed);
        Ok(tensor)
    }
}
