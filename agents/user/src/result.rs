//! The trained model: its stages, what they are taken from, its weights, and its test.

use std::collections::BTreeMap;
use std::fmt;

use tensorlink_model::{Architecture, Matrix, Parameter, Weights, WeightsError, parameters};
use tensorlink_node::files::FileError;
use tensorlink_node::ports::{ChainError, NetError, StoreError};
use tensorlink_node::wire::Malformed;
use tensorlink_node::wire::manifest::ManifestError;
use tensorlink_num::{Tensor, TensorError};
use tensorlink_program::engine::Engine;
use tensorlink_program::{CheckedProgram, ProgramError};
use tensorlink_training::{EvaluateError, Metrics, Stage, StageInfo, TrainingSet, evaluate};
use tensorlink_types::B256;
use thiserror::Error;

/// Why there is no result.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant says it")]
pub enum ResultError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Tensor(#[from] TensorError),
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    #[error("nobody gives the state of stage {stage} after interval {interval}: {}", reasons.join("; "))]
    Withheld { stage: u16, interval: u32, reasons: Vec<String> },
    #[error("{0}")]
    Declined(String),
    #[error("stage {stage} has no {which} claim for interval {interval}")]
    Unfinished { stage: u16, interval: u32, which: Claims },
}

/// Which claims states are taken from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claims {
    /// Any that is on chain and not void: it may still turn out to be wrong.
    Committed,
    /// The same, of one replica.
    Of(u16),
    /// Those that nobody can challenge any more.
    Final,
}

impl Claims {
    /// Whether a replica's are among them.
    pub(crate) const fn are_of(self, replica: u16) -> bool {
        match self {
            Self::Committed | Self::Final => true,
            Self::Of(one) => one == replica,
        }
    }
}

impl fmt::Display for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Committed | Self::Of(_) => "confirmed",
            Self::Final => "final",
        })
    }
}

/// One stage of a trained model.
#[derive(Clone, Debug)]
pub struct TrainedStage {
    /// Its program.
    pub program: CheckedProgram,
    /// The compiler's notes.
    pub info: StageInfo,
    /// Constants of the program.
    pub constants: Vec<Tensor>,
    /// State after the last step that was taken.
    pub state: Vec<Tensor>,
    /// Root of that state, as the final claim holds it.
    pub root: B256,
}

/// The weights of a trained model, out of its stages' states: each the float that is nearest to the integers' value.
///
/// # Errors
/// [`WeightsError`] if the stages are not all of the architecture's.
pub fn weights(architecture: &Architecture, stages: &[TrainedStage]) -> Result<Weights, WeightsError> {
    Weights::new(architecture, matrices(parameters(architecture), stages))
}

/// Those of the parameters that are trained, out of the stages' states, as [`weights`].
pub fn matrices(parameters: Vec<Parameter>, stages: &[TrainedStage]) -> BTreeMap<String, Matrix> {
    let states = stages.iter().flat_map(|stage| stage.program.state.iter().zip(&stage.state));
    let mut tensors: BTreeMap<&str, &Tensor> = states.map(|(slot, tensor)| (slot.name.as_str(), tensor)).collect();
    let mut matrices = BTreeMap::new();
    for Parameter { name, rows, columns } in parameters {
        let values = tensors.remove(name.as_str()).map(|tensor| tensor.to_f64().into_iter().map(|value| value as f32));
        if let Some(matrix) = values.and_then(|values| Matrix::new(rows, columns, values.collect())) {
            matrices.insert(name, matrix);
        }
    }
    matrices
}

/// Tests a trained model on rows.
///
/// # Errors
/// [`ResultError::Evaluate`].
pub fn test<E: Engine>(engine: &E, stages: &[TrainedStage], rows: &TrainingSet) -> Result<Metrics, ResultError> {
    let stages: Vec<Stage<'_>> = stages
        .iter()
        .map(|s| Stage { program: &s.program, info: &s.info, constants: &s.constants, state: &s.state })
        .collect();
    Ok(evaluate(engine, &stages, rows)?)
}

#[cfg(test)]
mod tests {
    use tensorlink_model::random;
    use tensorlink_node::interval::state_root_of;
    use tensorlink_training::model::language::Origin;
    use tensorlink_training::{LanguageModel, Training};

    use super::*;
    use crate::Draft;

    const MODEL: &str = r#"{ "name": "small",
        "decoder": { "width": 16, "layers": 2, "heads": 4, "kv_heads": 2, "hidden": 24, "context": 8 },
        "optimizer": { "learning_rate": 0.003, "warmup": 1, "weight_decay": 0.1, "clip": 1.0 },
        "sequences": 2, "steps": 2, "operand_bits": 8, "seed": 7 }"#;

    #[test]
    fn weights_are_what_the_stages_hold() {
        let model = LanguageModel::parse("m.json", MODEL.as_bytes()).unwrap();
        let Origin::Decoder(decoder) = model.origin() else { panic!("{:?}", model.origin()) };
        let draft = Draft::language(&model, decoder, "In the beginning God created. ".repeat(8).as_bytes()).unwrap();
        let prepared = draft.compile(&draft.cut(&[1 << 30; 2]).unwrap(), Training::calibrate).unwrap();
        let mut stages: Vec<TrainedStage> = prepared
            .stages
            .into_iter()
            .zip(prepared.states)
            .map(|(stage, state)| TrainedStage {
                root: state_root_of(&state),
                program: CheckedProgram::new(stage.program).unwrap(),
                info: stage.info,
                constants: stage.constants,
                state,
            })
            .collect();
        let architecture = draft.architecture.unwrap();
        let trained = weights(&architecture, &stages).unwrap();
        let drawn = random::weights(&architecture, 7).unwrap();
        assert_eq!(trained.count(), drawn.count());
        for ((name, trained), (_, drawn)) in trained.iter().zip(drawn.iter()) {
            let pairs = trained.values().iter().zip(drawn.values());
            let largest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(largest < 1e-6, "{name}: {largest}");
        }
        stages.pop();
        assert!(matches!(weights(&architecture, &stages), Err(WeightsError::Missing(_))));
    }
}
