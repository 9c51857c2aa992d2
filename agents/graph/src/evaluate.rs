//! Accuracy of a trained model on rows it never saw, by the very programs that trained it: their preparation and the
//! forward pass of their first micro-batch, with given rows in place of drawn ones.

use std::collections::BTreeMap;

use tensorlink_num::{Tensor, TensorError};
use tensorlink_types::{Program, Segment, Source, TensorType, TypeError};
use thiserror::Error;

use crate::compile::TrainingSet;
use crate::engine::{Engine, EngineError, StepContext};
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
    let mut runs = stages.iter().map(|stage| Run::new(engine, stage)).collect::<Result<Vec<_>, _>>()?;
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
            let given = [
                (&run.stage.info.features, "features", &rows.features, &features),
                (&run.stage.info.labels, "labels", &rows.labels, &labels),
            ];
            let mut inputs = BTreeMap::new();
            for (operators, what, tensor, values) in given {
                let Some(&index) = operators.first() else { continue };
                let Some(operator) = run.stage.program.operators.get(index as usize) else { continue };
                let tensor = window(&operator.output, what, tensor, values, first)?;
                batch = batch.min(operator.output.dims().first().map_or(0, |rows| *rows as usize));
                inputs.insert(index, tensor);
            }
            passed = run.forward(&inputs, passed)?;
            let probabilities = run.stage.info.probabilities.first().and_then(|index| run.exported(*index));
            let drawn = run.stage.info.labels.first().and_then(|index| inputs.get(index));
            if let (Some(probabilities), Some(labels)) = (probabilities, drawn) {
                metrics +=
                    Metrics::of(&probabilities?, labels, count.saturating_sub(first).saturating_mul(labels_of_row));
            }
        }
        first = first.saturating_add(batch.max(1));
    }
    Ok(metrics)
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

/// A stage on an engine, its weights cast.
struct Run<'a, E: Engine> {
    engine: &'a E,
    stage: &'a Stage<'a>,
    constants: Vec<E::Tensor>,
    state: Vec<E::Tensor>,
    outputs: BTreeMap<u32, E::Tensor>,
}

impl<'a, E: Engine> Run<'a, E> {
    fn new(engine: &'a E, stage: &'a Stage<'a>) -> Result<Self, EvaluateError> {
        let import = |tensors: &[Tensor]| tensors.iter().map(|t| engine.import(t)).collect::<Result<Vec<_>, _>>();
        let (constants, state) = (import(stage.constants)?, import(stage.state)?);
        let mut run = Self { engine, stage, constants, state, outputs: BTreeMap::new() };
        run.segment(|segment| matches!(segment, Segment::Prepare { .. }), &BTreeMap::new(), None)?;
        Ok(run)
    }

    fn forward(
        &mut self,
        given: &BTreeMap<u32, Tensor>,
        input: Option<E::Tensor>,
    ) -> Result<Option<E::Tensor>, EvaluateError> {
        self.segment(|s| matches!(s, Segment::Forward { micro_batch: 0, .. }), given, input.as_ref())?;
        Ok(self.stage.program.to_next.first().and_then(|index| self.outputs.get(index)).cloned())
    }

    fn exported(&self, index: u32) -> Option<Result<Tensor, EngineError>> {
        self.outputs.get(&index).map(|tensor| self.engine.export(tensor))
    }

    fn segment(
        &mut self,
        wanted: impl Fn(&Segment) -> bool,
        given: &BTreeMap<u32, Tensor>,
        input: Option<&E::Tensor>,
    ) -> Result<(), EvaluateError> {
        let program: &Program = self.stage.program;
        let Some(segment) = program.segments.iter().find(|segment| wanted(segment)) else { return Ok(()) };
        for index in segment.operators().clone() {
            let Some(operator) = program.operators.get(index as usize) else { continue };
            let output = match given.get(&index) {
                Some(tensor) => self.engine.import(tensor)?,
                None => {
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
                    self.engine.execute(operator, &operands, &StepContext::default())?
                }
            };
            self.outputs.insert(index, output);
        }
        Ok(())
    }
}
