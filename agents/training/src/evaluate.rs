//! Accuracy of a trained model on rows it never saw, by the very programs that trained it: what leads to the first
//! probabilities of the last stage, with given rows in place of drawn ones.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tensorlink_num::{Tensor, TensorError};
use tensorlink_program::engine::{Engine, EngineError, StepContext};
use tensorlink_types::{Opcode, Operator, Program, Source, TensorType, TypeError};
use thiserror::Error;

use crate::compile::TrainingSet;
use crate::local::Stage;
use crate::metrics::Metrics;

/// Why a model could not be evaluated.
#[derive(Debug, Error)]
pub enum EvaluateError {
    /// The rows are not of the type the program was compiled for.
    #[error("{what} are {actual}, the program draws {expected}; scale the rows like the training set")]
    Rows {
        /// Features or labels.
        what: &'static str,
        /// Type of the rows given.
        actual: TensorType,
        /// Type the program draws.
        expected: TensorType,
    },
    /// The stages do not form a whole model: a tensor that an operator reads is never made.
    #[error("{operator} lacks an input; pass every stage in order, with its constants and state")]
    Incomplete {
        /// Name of the operator.
        operator: String,
    },
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Rows could not be formed; excluded by the checks above.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// As above.
    #[error(transparent)]
    Type(#[from] TypeError),
}

/// Runs all rows of a set through the stages, each with its state after training.
///
/// # Errors
/// An [`EvaluateError`].
pub fn evaluate<E: Engine>(engine: &E, stages: &[Stage<'_>], rows: &TrainingSet) -> Result<Metrics, EvaluateError> {
    let mut runs = runs(engine, stages)?;
    // A row of features has one label, or as many as it has tokens.
    let count = rows.features.ty().dims().first().map_or(0, |rows| *rows as usize);
    let labels_of_row = (rows.labels.ty().elements() as usize).checked_div(count).unwrap_or_default();
    let (features, labels) = (rows.features.mantissas().to_vec(), rows.labels.mantissas().to_vec());
    let mut metrics = Metrics::default();
    let mut first = 0;
    while first < count {
        let mut passed = None;
        let mut batch = usize::MAX;
        for run in &mut runs {
            let features = run.features.iter().map(|index| (*index, "features", &rows.features, &features));
            let labels = run.stage.info.labels.first().map(|index| (*index, "labels", &rows.labels, &labels));
            let mut inputs = BTreeMap::new();
            for (index, what, tensor, values) in features.chain(labels) {
                let Some(operator) = run.stage.program.operators.get(index as usize) else { continue };
                let tensor = window(&operator.output, what, tensor, values, first)?;
                batch = batch.min(operator.output.dims().first().map_or(0, |rows| *rows as usize));
                inputs.insert(index, tensor);
            }
            passed = run.forward(&inputs, passed)?;
            let drawn = run.stage.info.labels.first().and_then(|index| inputs.get(index));
            if let (Some(probabilities), Some(labels)) = (&passed, drawn) {
                let seen = count.saturating_sub(first).saturating_mul(labels_of_row);
                metrics += Metrics::of(&engine.export(probabilities)?, labels, seen);
            }
        }
        first = first.saturating_add(batch.max(1));
    }
    Ok(metrics)
}

/// The stages that lead to the last one's probabilities, in their order.
fn runs<'a, E: Engine>(engine: &'a E, stages: &'a [Stage<'a>]) -> Result<Vec<Run<'a, E>>, EvaluateError> {
    let mut runs: Vec<Run<'a, E>> = Vec::new();
    for stage in stages.iter().rev() {
        let wanted = if runs.is_empty() { &stage.info.probabilities } else { &stage.program.to_next };
        let Some(&wanted) = wanted.first() else { break };
        let run = Run::new(engine, stage, wanted)?;
        let receives = run.receives;
        runs.push(run);
        // Each share of a step's sequences has all of the model itself.
        if !receives {
            break;
        }
    }
    runs.reverse();
    Ok(runs)
}

/// Rows from `first` on as one micro-batch, the last one repeated as often as rows are lacking.
fn window(
    drawn: &TensorType,
    what: &'static str,
    tensor: &Tensor,
    values: &[i64],
    first: usize,
) -> Result<Tensor, EvaluateError> {
    let ty = tensor.ty();
    let width = if ty.dims().len() == 1 { 1 } else { ty.row() as usize };
    let fits =
        drawn.dims().get(1..) == ty.dims().get(1..) && (drawn.bits(), drawn.exponent()) == (ty.bits(), ty.exponent());
    if !fits {
        return Err(EvaluateError::Rows { what, actual: ty.clone(), expected: drawn.clone() });
    }
    let rows = values.chunks_exact(width.max(1));
    let batch = drawn.dims().first().map_or(0, |rows| *rows as usize);
    let last = rows.clone().next_back().unwrap_or_default();
    let padded = rows.skip(first).chain(std::iter::repeat(last)).take(batch).flatten().copied();
    Ok(Tensor::from_wide(drawn.clone(), &padded.collect::<Vec<_>>())?)
}

/// What leads to one output of a stage, on an engine.
struct Run<'a, E: Engine> {
    engine: &'a E,
    stage: &'a Stage<'a>,
    constants: Vec<E::Tensor>,
    state: Vec<E::Tensor>,
    wanted: u32,
    /// Operators that draw the features that it comes of.
    features: Vec<u32>,
    /// Operators that depend on the rows or on what the previous stage sends, in order.
    varying: Vec<u32>,
    /// Whether the previous stage is needed.
    receives: bool,
    outputs: BTreeMap<u32, E::Tensor>,
}

impl<'a, E: Engine> Run<'a, E> {
    fn new(engine: &'a E, stage: &'a Stage<'a>, wanted: u32) -> Result<Self, EvaluateError> {
        let import = |tensors: &[Tensor]| tensors.iter().map(|t| engine.import(t)).collect::<Result<Vec<_>, _>>();
        let (constants, state) = (import(stage.constants)?, import(stage.state)?);
        let mut run = Self {
            engine,
            stage,
            constants,
            state,
            wanted,
            features: Vec::new(),
            varying: Vec::new(),
            receives: false,
            outputs: BTreeMap::new(),
        };
        let drawn: BTreeSet<u32> = stage.info.features.iter().chain(stage.info.labels.first()).copied().collect();
        let mut varying = drawn.clone();
        let leading = leading_to(stage.program, wanted, &drawn);
        run.features = stage.info.features.iter().filter(|index| leading.contains(index)).copied().collect();
        for index in leading {
            let Some(operator) = stage.program.operators.get(index as usize) else { continue };
            let mut varies = drawn.contains(&index);
            for operand in &operator.operands {
                match operand.source {
                    Source::Output(i) => varies |= varying.contains(&i),
                    Source::FromPrevious(_) => (varies, run.receives) = (true, true),
                    Source::State(_) | Source::Constant(_) | Source::FromNext(_) => {}
                }
            }
            if varies {
                varying.insert(index);
                run.varying.push(index);
            } else {
                run.execute(index, None)?;
            }
        }
        Ok(run)
    }

    /// The wanted output for these rows.
    fn forward(
        &mut self,
        given: &BTreeMap<u32, Tensor>,
        input: Option<E::Tensor>,
    ) -> Result<Option<E::Tensor>, EvaluateError> {
        for index in self.varying.clone() {
            match given.get(&index) {
                Some(tensor) => drop(self.outputs.insert(index, self.engine.import(tensor)?)),
                None => self.execute(index, input.as_ref())?,
            }
        }
        Ok(self.outputs.get(&self.wanted).cloned())
    }

    fn execute(&mut self, index: u32, input: Option<&E::Tensor>) -> Result<(), EvaluateError> {
        let program: &Program = self.stage.program;
        let Some(operator) = program.operators.get(index as usize) else { return Ok(()) };
        let find = |source: Source| match source {
            Source::Output(i) => self.outputs.get(&i),
            Source::State(i) => self.state.get(i as usize),
            Source::Constant(i) => self.constants.get(i as usize),
            Source::FromPrevious(_) => input,
            Source::FromNext(_) => None,
        };
        let operands = operator.operands.iter().map(|o| find(o.source)).collect::<Option<Vec<_>>>();
        let name = || program.names.get(index as usize).cloned().unwrap_or_default();
        let operands = operands.ok_or_else(|| EvaluateError::Incomplete { operator: name() })?;
        let operator = all_kept(operator);
        let output = self.engine.execute(&operator, &operands, &StepContext::default())?;
        self.outputs.insert(index, output);
        Ok(())
    }
}

/// An operator as a model that has learned is asked: of a dropout, with nothing dropped.
fn all_kept(operator: &Operator) -> Cow<'_, Operator> {
    match (operator.opcode, operator.attributes.as_slice()) {
        (Opcode::Dropout, &[keep, stream, c, shift]) => {
            let c = (i128::from(c).saturating_mul(keep.into()).saturating_add(1 << 31)) >> 32;
            // SAFETY of the cast: at most 2^32 are kept of as many, so that the factor does not grow.
            Cow::Owned(Operator { attributes: vec![1 << 32, stream, c as i64, shift], ..operator.clone() })
        }
        _ => Cow::Borrowed(operator),
    }
}

/// The operators that an output depends on, itself included, in order; nothing beyond those that are `given`.
fn leading_to(program: &Program, wanted: u32, given: &BTreeSet<u32>) -> BTreeSet<u32> {
    let (mut found, mut open) = (BTreeSet::new(), vec![wanted]);
    while let Some(index) = open.pop() {
        if !found.insert(index) || given.contains(&index) {
            continue;
        }
        let operands = program.operators.get(index as usize).into_iter().flat_map(|operator| &operator.operands);
        open.extend(operands.filter_map(|operand| match operand.source {
            Source::Output(i) => Some(i),
            _ => None,
        }));
    }
    found
}
