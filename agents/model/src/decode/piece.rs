//! Pieces of a stage's program for rows of texts, emitted once for each number of rows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tensorlink_program::engine::{Engine, StepContext};
use tensorlink_program::executor::ExecuteError;
use tensorlink_program::fused::Fusions;
use tensorlink_types::{JobKey, Operator, Source, TensorType};

use crate::emit::{Core, Cut, Emitter, Value};
use crate::plan::{Head, Plan, PlanError, body, head, received, stream};

/// What some of the rows of a call want of the choice of their successors. Without, it changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Need {
    pub(super) temperature: bool,
    pub(super) penalty: bool,
}

/// Numbers of rows for which pieces are kept; beyond it all are forgotten.
const KEPT: usize = 64;

/// Operators that follow one another, and where they stop for attention.
#[derive(Debug)]
pub(super) struct Piece {
    operators: Vec<Operator>,
    names: Arc<[String]>,
    /// Outputs that nothing reads after an operator, by operator.
    last: Arc<[Vec<usize>]>,
    fusions: Arc<Fusions>,
    pub(super) cut: Cut,
    /// What it takes.
    pub(super) input: TensorType,
    output: Source,
}

impl Piece {
    /// The stage from what it receives to what its last layer gives.
    pub(super) fn body(plan: &Plan, rows: u32) -> Result<Self, PlanError> {
        let (a, layers) = (plan.architecture(), plan.layers());
        let (operators, names, cut, (input, output)) = plan.for_cache(rows, |emitter| {
            let input = received(emitter, a, layers)?;
            let ty = input.ty.clone();
            Ok((ty, body(emitter, layers, input)?.source))
        })?;
        Ok(Self::new((operators, names), cut, input, output))
    }

    /// From there to the stage's output; nothing if the last layer is another stage's.
    pub(super) fn head(plan: &Plan, rows: u32) -> Result<Self, PlanError> {
        Self::end(plan, rows, |emitter, x| head(emitter, plan.architecture(), plan.layers(), plan.head(), x))
    }

    /// From there to the successors of rows, on a stage that chooses, by no more than such rows need. It takes which
    /// tokens their texts have already as `State(0)`, if that counts.
    pub(super) fn chooser(plan: &Plan, rows: u32, need: Need) -> Result<Self, PlanError> {
        Self::end(plan, rows, |emitter, x| {
            let a = plan.architecture();
            let mut logits = head(emitter, a, plan.layers(), Head::Output, x)?;
            if need.penalty {
                let seen = Value { source: Source::State(0), ty: emitter.seen_type(a.vocabulary)? };
                logits = emitter.penalised(&logits, &seen)?;
            }
            if need.temperature { emitter.choice(&logits) } else { emitter.likeliest(&logits) }
        })
    }

    fn end(
        plan: &Plan,
        rows: u32,
        emit: impl FnOnce(&mut Emitter<'_>, Value) -> Result<Value, PlanError>,
    ) -> Result<Self, PlanError> {
        let (operators, names, cut, (input, output)) = plan.for_cache(rows, |emitter| {
            let input = stream(emitter, plan.architecture(), plan.layers().end)?;
            let x = Value { source: Source::FromPrevious(0), ty: input.clone() };
            Ok((input, emit(emitter, x)?.source))
        })?;
        Ok(Self::new((operators, names), cut, input, output))
    }

    /// The attention of a layer, of so many rows with so many keys.
    pub(super) fn core(plan: &Plan, core: &Core, rows: u32, keys: u32) -> Result<Self, PlanError> {
        let (operators, names, cut, ()) = plan.for_cache(rows, |emitter| emitter.core(core, keys))?;
        let output = Source::Output(u32::try_from(operators.len().saturating_sub(1)).unwrap_or(u32::MAX));
        Ok(Self::new((operators, names), cut, core.query.ty.clone(), output))
    }

    fn new((operators, names): (Vec<Operator>, Vec<String>), cut: Cut, input: TensorType, output: Source) -> Self {
        let mut reader = BTreeMap::new();
        for (index, operator) in operators.iter().enumerate() {
            for operand in &operator.operands {
                if let Source::Output(read) = operand.source {
                    reader.insert(read as usize, index);
                }
            }
        }
        let mut last = vec![Vec::new(); operators.len()];
        for (read, index) in reader {
            // What attention reads later is dropped there.
            let reads =
                |core: &Core| [&core.query, &core.key, &core.value].map(|x| x.source).contains(&output_of(read));
            if !cut.cores.iter().any(reads)
                && let Some(last) = last.get_mut(index)
            {
                last.push(read);
            }
        }
        let taken = cut.cores.iter().flat_map(|core| [core.query.source, core.key.source, core.value.source]);
        let fusions = Arc::new(Fusions::attentions(&operators, taken.chain([output])));
        Self { operators, names: names.into(), last: last.into(), fusions, cut, input, output }
    }

    /// The same with other types.
    pub(super) fn retyped<Error>(
        &self,
        retype: impl Fn(&TensorType) -> Result<TensorType, Error>,
    ) -> Result<Self, Error> {
        let mut operators = self.operators.clone();
        for operator in &mut operators {
            operator.output = retype(&operator.output)?;
            for operand in &mut operator.operands {
                operand.ty = retype(&operand.ty)?;
            }
        }
        let (names, last, fusions) = (Arc::clone(&self.names), Arc::clone(&self.last), Arc::clone(&self.fusions));
        let (input, output) = (retype(&self.input)?, self.output);
        Ok(Self { operators, names, last, fusions, cut: Cut::default(), input, output })
    }

    /// Number of operators.
    pub(super) const fn len(&self) -> usize {
        self.operators.len()
    }

    /// Executes some of the operators.
    pub(super) fn run<E: Engine>(
        &self,
        engine: &E,
        frame: &mut Frame<'_, E::Tensor>,
        operators: Range<usize>,
    ) -> Result<(), ExecuteError> {
        let context = StepContext { job_key: JobKey::default(), step: 0 };
        for index in operators {
            let name = || self.names.get(index).cloned().unwrap_or_default();
            let Some(turn) = self.fusions.turn(&self.operators, index) else { continue };
            let outputs = turn.take(engine, |source| frame.get(source), &context);
            let outputs = outputs.ok_or_else(|| ExecuteError::Order(name()))?;
            frame.outputs.extend(outputs.map_err(|source| ExecuteError::Engine { operator: name(), source })?);
            for read in self.fusions.done(index).filter_map(|done| self.last.get(done)).flatten() {
                frame.outputs.remove(read);
            }
        }
        Ok(())
    }

    /// What the piece gives, once all of it has run.
    pub(super) fn output<T: Clone>(&self, frame: &Frame<'_, T>) -> Result<T, ExecuteError> {
        frame.get(self.output).cloned().ok_or_else(|| ExecuteError::Order("the output".to_owned()))
    }
}

/// Source of an output.
fn output_of(index: usize) -> Source {
    Source::Output(u32::try_from(index).unwrap_or(u32::MAX))
}

/// Tensors of a piece that runs.
pub(super) struct Frame<'a, T> {
    pub(super) constants: &'a [T],
    pub(super) outputs: BTreeMap<usize, T>,
    /// What sessions give.
    pub(super) states: BTreeMap<u32, T>,
    /// What the piece takes.
    pub(super) input: Option<T>,
    pub(super) controls: Option<T>,
}

impl<'a, T> Frame<'a, T> {
    pub(super) const fn new(constants: &'a [T], input: Option<T>) -> Self {
        Self { constants, outputs: BTreeMap::new(), states: BTreeMap::new(), input, controls: None }
    }

    pub(super) fn get(&self, source: Source) -> Option<&T> {
        match source {
            Source::Output(i) => self.outputs.get(&(i as usize)),
            Source::State(i) => self.states.get(&i),
            Source::Constant(i) => self.constants.get(i as usize),
            Source::FromPrevious(_) => self.input.as_ref(),
            Source::FromNext(_) => self.controls.as_ref(),
        }
    }

    /// Takes out an output that nothing else reads.
    pub(super) fn take(&mut self, source: Source) -> Option<T> {
        match source {
            Source::Output(i) => self.outputs.remove(&(i as usize)),
            _ => None,
        }
    }
}

/// Pieces by what they were made for.
#[derive(Debug)]
pub(super) struct Kept<K, T>(BTreeMap<K, Arc<T>>);

impl<K: Ord, T> Default for Kept<K, T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, T> Kept<K, T> {
    /// The one for a key, made if there is none.
    pub(super) fn get<Error>(&mut self, key: K, make: impl FnOnce() -> Result<T, Error>) -> Result<Arc<T>, Error> {
        if let Some(kept) = self.0.get(&key) {
            return Ok(Arc::clone(kept));
        }
        if self.0.len() >= KEPT {
            self.0.clear();
        }
        let made = Arc::new(make()?);
        self.0.insert(key, Arc::clone(&made));
        Ok(made)
    }
}
