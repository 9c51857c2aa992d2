//! What a training starts from, whatever is trained: the graph of a step, floats to begin with, and a smaller step to find
//! exponents by.

use tensorlink_num::Tensor;
use tensorlink_types::TensorRoot;

use std::ops::Range;

use crate::calibrate::{self, CalibrateError, Calibration};
use crate::compile::{CompileError, CompiledStage, TrainingSet, compile_graph};
use crate::exponents::Margins;
use crate::model::{LanguageModel, LayerWeights, Linear, Network};
use crate::partition;
use crate::step::StepGraph;
use crate::step::float::{FloatData, FloatState};
use crate::step::language::{self, Untrainable};
use crate::transformer::random;
use crate::transformer::{Architecture, WeightsError, parameters};

/// Sequences of a step of calibration of a language model.
const TRIAL_SEQUENCES: u32 = 2;

/// A part of a model that is not cut any further.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Layer {
    /// For people.
    pub name: String,
    /// Numbers that are trained.
    pub parameters: u64,
    /// What a stage needs for it, an estimate from above.
    pub bytes: u64,
}

/// A training, not yet cut into stages.
#[derive(Clone, Debug)]
pub struct Training {
    /// A step.
    pub graph: StepGraph,
    /// Initial state by name.
    pub state: FloatState,
    /// The parts that stages are made of.
    pub layers: Vec<Layer>,
    /// A step of fewer rows, or cut less.
    trial: StepGraph,
    /// How many times as many rows a step has.
    growth: f64,
    margins: Margins,
}

impl Training {
    /// Of a network on a table of `rows` rows.
    pub fn of_network(network: &Network, weights: &[LayerWeights], rows: u32) -> Self {
        // Exponents do not depend on how a batch is cut, so that results do not either.
        let trial = StepGraph::training(&Network { micro_batches: 1, ..network.clone() }, rows);
        let layer = |((index, linear), bytes): ((usize, &Linear), u64)| {
            let activation = linear.activation.map_or(String::new(), |a| format!(" {a:?}").to_lowercase());
            Layer {
                name: format!("{} {} -> {}{activation}", Linear::name(index), linear.input, linear.output),
                parameters: u64::from(linear.output).saturating_mul(u64::from(linear.input).saturating_add(1)),
                bytes,
            }
        };
        let bytes = partition::layer_bytes(network);
        Self {
            graph: StepGraph::training(network, rows),
            state: calibrate::float_state(weights),
            layers: network.layers.iter().enumerate().zip(bytes).map(layer).collect(),
            trial,
            growth: 1.0,
            margins: Margins::for_operands(network.operand_bits),
        }
    }

    /// Of a language model from scratch, on `rows` sequences of a text of so many different characters.
    ///
    /// # Errors
    /// [`Untrainable`]; [`WeightsError`] for sizes that have no weights.
    pub fn of_language(model: &LanguageModel, characters: u32, rows: u32) -> Result<Self, LanguageError> {
        let architecture = model.architecture(characters);
        let sequences = model.sequences();
        let fewer = sequences.min(TRIAL_SEQUENCES);
        let weights = random::weights(&architecture, model.seed())?;
        let mut state = FloatState::new();
        for (name, matrix) in weights.iter() {
            let values: Vec<f64> = matrix.values().iter().map(|w| f64::from(*w)).collect();
            for moment in language::MOMENTS {
                state.insert(format!("{name}.{moment}"), vec![0.0; values.len()]);
            }
            state.insert(name.to_owned(), values);
        }
        Ok(Self {
            graph: StepGraph::language(&architecture, &model.recipe(sequences), rows)?,
            state,
            layers: layers(&architecture, model),
            trial: StepGraph::language(&architecture, &model.recipe(fewer), rows)?,
            growth: f64::from(sequences) / f64::from(fewer.max(1)),
            margins: language::MARGINS,
        })
    }

    /// Numbers that are trained.
    pub fn parameters(&self) -> u64 {
        self.layers.iter().map(|layer| layer.parameters).sum()
    }

    /// Trains in floats for some steps, and sees how large everything gets.
    ///
    /// # Errors
    /// As [`calibrate::calibrate`].
    pub fn calibrate(&self, data: &TrainingSet, steps: u32, seed: u64) -> Result<Calibration, CalibrateError> {
        let floats = FloatData { features: data.features.to_f64(), labels: data.labels.to_f64() };
        let mut found =
            calibrate::calibrate_graph(&self.trial, &floats, self.state.clone(), steps, seed, self.margins)?;
        for (site, largest) in &mut found.exponents.largest {
            *largest *= language::growth(site, self.growth);
        }
        Ok(found)
    }

    /// One program for each range of layers.
    ///
    /// # Errors
    /// As [`compile_graph`].
    pub fn compile(
        &self,
        calibration: &Calibration,
        data: &TrainingSet,
        stages: &[Range<usize>],
        commit: impl Fn(&Tensor) -> TensorRoot,
    ) -> Result<Vec<CompiledStage>, CompileError> {
        compile_graph(&self.graph, &calibration.exponents, data, stages, commit)
    }
}

/// Why a language model cannot be trained.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant says it")]
pub enum LanguageError {
    #[error(transparent)]
    Untrainable(#[from] Untrainable),
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

fn layers(architecture: &Architecture, model: &LanguageModel) -> Vec<Layer> {
    let last = architecture.layers as usize + 1;
    let mut layers: Vec<Layer> = (0..=last)
        .map(|layer| {
            let name = match layer {
                0 => "embedding".to_owned(),
                layer if layer == last => "head".to_owned(),
                layer => format!("block {layer}"),
            };
            Layer { name, parameters: 0, bytes: 0 }
        })
        .collect();
    for parameter in parameters(architecture) {
        let count = u64::from(parameter.rows).saturating_mul(parameter.columns.into());
        if let Some(layer) = layers.get_mut(language::layer_of(architecture, &parameter.name)) {
            layer.parameters = layer.parameters.saturating_add(count);
        }
    }
    let (sequences, tokens) = (u64::from(model.sequences()), u64::from(model.context()));
    for layer in &mut layers {
        // Value and moments before and after (2 × 16 bytes), operands, a gradient of each sequence and what becomes of them.
        let state = layer.parameters.saturating_mul(32 + 12 + 4 * sequences + 24);
        // What is kept of each sequence until it is back, and attention's matrices.
        let kept = u64::from(architecture.width).saturating_mul(64).saturating_add(u64::from(architecture.hidden) * 24);
        let scores = u64::from(architecture.heads).saturating_mul(tokens).saturating_mul(16);
        layer.bytes = state.saturating_add(sequences * tokens * kept.saturating_add(scores));
    }
    layers
}
