//! What a training starts from, whatever is trained: the graph of a step, floats to begin with, and a smaller step to
//! find exponents by.

use tensorlink_num::Tensor;
use tensorlink_types::TensorRoot;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tensorlink_model::lora::{Lora, LoraError};
use tensorlink_model::partition::{self, PartitionError};
use tensorlink_model::random;
use tensorlink_model::{Architecture, Output, Parameter, Weights, WeightsError, parameters};

use crate::calibrate::{self, CalibrateError, Calibration, Interpreted, Trial};
use crate::compile::{CompileError, CompiledStage, TrainingSet, compile_graph};
use crate::exponents::Margins;
use crate::model::{Decoder, Imported, LanguageModel, LayerWeights, Linear, Network};
use crate::step::StepGraph;
use crate::step::float::{FloatData, FloatState};
use crate::step::language::{self, Adapters, Recipe, Untrainable};
use crate::whole::check_stages;

/// Sequences of a step of calibration of a language model.
const TRIAL_SEQUENCES: u32 = 2;

/// How many times what a stage holds a worker needs, at most: beside the step there are the state on its way to the
/// disk, and the repetition of an interval for an auditor.
pub const COPIES: u64 = 4;

/// Bytes of the tables of functions in a stage, at most, whatever its size.
pub const TABLES: u64 = 64 << 10;

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
    /// What it starts from, where that is not the initial state.
    trial_state: Option<FloatState>,
    /// How many times as many rows a step has.
    growth: f64,
    margins: Margins,
    /// Of a language model: what its graph is made of.
    language: Option<(Architecture, Recipe, u32)>,
    /// Shares of a step's sequences, each with all of the model.
    shares: u16,
    parameters: u64,
    operand_bits: u8,
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
        let bytes = network.layer_bytes();
        let layers: Vec<Layer> = network.layers.iter().enumerate().zip(bytes).map(layer).collect();
        Self {
            graph: StepGraph::training(network, rows),
            state: calibrate::float_state(weights),
            parameters: layers.iter().map(|layer| layer.parameters).sum(),
            layers,
            language: None,
            shares: 1,
            trial,
            trial_state: None,
            growth: 1.0,
            margins: Margins::for_operands(network.operand_bits),
            operand_bits: network.operand_bits,
        }
    }

    /// Of a decoder from scratch, on `rows` sequences of a text of so many different characters.
    ///
    /// # Errors
    /// [`Untrainable`]; [`WeightsError`] for sizes that have no weights.
    pub fn of_language(
        model: &LanguageModel,
        decoder: &Decoder,
        characters: u32,
        rows: u32,
    ) -> Result<Self, LanguageError> {
        let architecture = decoder.architecture(characters);
        let weights = random::weights(&architecture, model.seed())?;
        Self::of_weights(model, &architecture, &weights, rows)
    }

    /// Of a model that goes on from where another training ended, on `rows` sequences of tokens.
    ///
    /// # Errors
    /// [`Untrainable`]; [`WeightsError`] for weights that are not those of the folder's architecture.
    pub fn of_imported(
        model: &LanguageModel,
        imported: &Imported,
        (folder, weights): (&Architecture, &Weights),
        rows: u32,
    ) -> Result<Self, LanguageError> {
        let architecture = imported.architecture(folder);
        if let Some(lora) = &imported.lora {
            return Self::of_adapters(model, lora, (&architecture, weights), rows);
        }
        let mut training = Self::of_weights(model, &architecture, weights, rows)?;
        let (head, embedding) = ("head.weight", weights.get("embedding.tokens")?);
        if imported.untie && weights.get(head).is_err() {
            training.state.extend(state_of(head, embedding.values()));
        }
        Ok(training)
    }

    /// Of an encoder that learns the classes of `rows` texts, the shorter ones followed by a token that stands
    /// for nothing.
    ///
    /// # Errors
    /// [`Untrainable`].
    pub fn of_encoder(
        model: &LanguageModel,
        (architecture, weights): (&Architecture, &Weights),
        padding: u32,
        rows: u32,
    ) -> Result<Self, LanguageError> {
        let recipe = Recipe { padding: Some(padding), ..model.recipe(model.sequences()) };
        Self::of_recipe(recipe, (architecture, state_of_all(weights)), rows)
    }

    fn of_weights(
        model: &LanguageModel,
        architecture: &Architecture,
        weights: &Weights,
        rows: u32,
    ) -> Result<Self, LanguageError> {
        Self::of_recipe(model.recipe(model.sequences()), (architecture, state_of_all(weights)), rows)
    }

    /// Of adapters beside the weights of a model.
    fn of_adapters(
        model: &LanguageModel,
        lora: &Lora,
        (architecture, weights): (&Architecture, &Weights),
        rows: u32,
    ) -> Result<Self, LanguageError> {
        lora.check(architecture)?;
        let state = |values: BTreeMap<String, Vec<f32>>| -> FloatState {
            values.iter().flat_map(|(name, values)| state_of(name, values)).collect()
        };
        let (begin, grown) = (lora.begin(architecture, model.seed()), lora.grown(architecture, model.seed()));
        let adapters = Adapters { lora: lora.clone(), base: Arc::new(weights.clone()) };
        let recipe = Recipe { adapters: Some(adapters), ..model.recipe(model.sequences()) };
        let training = Self::of_recipe(recipe, (architecture, state(begin)), rows)?;
        Ok(Self { trial_state: Some(state(grown)), ..training })
    }

    fn of_recipe(
        recipe: Recipe,
        (architecture, state): (&Architecture, FloatState),
        rows: u32,
    ) -> Result<Self, LanguageError> {
        let (sequences, operand_bits) = (recipe.sequences, recipe.operand_bits);
        let fewer = sequences.min(TRIAL_SEQUENCES);
        let layers = layers(architecture, &recipe);
        Ok(Self {
            graph: StepGraph::language(architecture, &recipe, rows)?,
            state,
            parameters: layers.iter().map(|layer| layer.parameters).sum(),
            layers,
            trial: StepGraph::language(architecture, &Recipe { sequences: fewer, ..recipe.clone() }, rows)?,
            trial_state: None,
            language: Some((architecture.clone(), recipe, rows)),
            shares: 1,
            growth: f64::from(sequences) / f64::from(fewer.max(1)),
            margins: language::MARGINS,
            operand_bits,
        })
    }

    /// The same training, its sequences in so many shares, each with all of the model: states stay the same, bit
    /// by bit.
    ///
    /// # Errors
    /// [`LanguageError::Alone`] for anything but a language model; [`Untrainable`] for more shares than sequences.
    pub fn shared(self, shares: u16) -> Result<Self, LanguageError> {
        let (_, recipe, _) = self.language.as_ref().ok_or(LanguageError::Alone)?;
        recipe.check_shares(shares)?;
        Ok(Self { shares, ..self })
    }

    /// Shares of a step's sequences.
    pub const fn shares(&self) -> u16 {
        self.shares
    }

    /// Cuts the layers of each share for workers of these memories (bytes), which stand in line share after share: one
    /// range for each stage of a share. A worker takes up to [`COPIES`] times what the stage itself holds.
    ///
    /// # Errors
    /// [`PartitionError`].
    pub fn cut(&self, memories: &[u64]) -> Result<Vec<Range<usize>>, PartitionError> {
        let shares = usize::from(self.shares);
        let stages = memories.len().checked_div(shares).unwrap_or_default();
        if !memories.len().is_multiple_of(shares) {
            return Err(PartitionError::Shares { stages: memories.len(), shares });
        }
        // All shares are cut alike: the least memory at a place counts.
        let least = |part| {
            let least = memories.iter().skip(part).step_by(stages).min();
            least.map_or(0, |memory| memory.saturating_sub(TABLES))
        };
        partition::partition(&self.layer_bytes(stages), &(0..stages).map(least).collect::<Vec<_>>())
    }

    /// Bytes of memory that a worker lends each layer of a share that is cut into so many stages, at most.
    pub(crate) fn layer_bytes(&self, stages: usize) -> Vec<u64> {
        let of = |layers: &[Layer]| layers.iter().map(|layer| layer.bytes.saturating_mul(COPIES)).collect();
        match &self.language {
            Some((architecture, recipe, _)) if self.shares > 1 => {
                // A share of one stage has its sequences one after another, and keeps one at a time.
                let sequences = if stages == 1 { 1 } else { recipe.sequences.div_ceil(self.shares.into()) };
                of(&layers(architecture, &Recipe { sequences, ..recipe.clone() }))
            }
            _ => of(&self.layers),
        }
    }

    /// Bits of the operands of products with weights, 8 or 16.
    pub const fn operand_bits(&self) -> u8 {
        self.operand_bits
    }

    /// Of a language model: its architecture, and how it is trained.
    pub fn language(&self) -> Option<(&Architecture, &Recipe)> {
        self.language.as_ref().map(|(architecture, recipe, _)| (architecture, recipe))
    }

    /// How many times as many sequences a step has as one of [`Self::calibrate`].
    pub const fn growth(&self) -> f64 {
        self.growth
    }

    /// Numbers that are trained.
    pub const fn parameters(&self) -> u64 {
        self.parameters
    }

    /// Trains in floats for some steps, and sees how large everything gets.
    ///
    /// # Errors
    /// As [`calibrate::calibrate`].
    pub fn calibrate(&self, data: &TrainingSet, steps: u32, seed: u64) -> Result<Calibration, CalibrateError> {
        self.calibrate_by(|graph, data, state| Ok(Interpreted::new(graph, data, state.clone())), data, steps, seed)
    }

    /// The same by a float run that `start` begins from a step's graph, the data and the initial state.
    ///
    /// # Errors
    /// [`CalibrateError`].
    pub fn calibrate_by<'a, T: Trial>(
        &'a self,
        start: impl FnOnce(&'a StepGraph, FloatData, &'a FloatState) -> Result<T, CalibrateError>,
        data: &TrainingSet,
        steps: u32,
        seed: u64,
    ) -> Result<Calibration, CalibrateError> {
        let state = self.trial_state.as_ref().unwrap_or(&self.state);
        let mut trial = start(&self.trial, calibrate::float_data(data), state)?;
        let mut found = calibrate::calibrate_trial(&self.trial, &mut trial, steps, seed, self.margins)?;
        for (site, largest) in &mut found.exponents.largest {
            *largest *= language::growth(site, self.growth);
        }
        Ok(found)
    }

    /// One program for each range of layers and share, share after share.
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
        let Some((architecture, recipe, rows)) = self.language.as_ref().filter(|_| self.shares > 1) else {
            return compile_graph(&self.graph, &calibration.exponents, data, stages, commit);
        };
        check_stages(self.layers.len(), stages)?;
        let graph = StepGraph::shared(architecture, recipe, *rows, (self.shares, stages))?;
        let each: Vec<Range<usize>> = (0..graph.layers).map(|stage| stage..stage.saturating_add(1)).collect();
        compile_graph(&graph, &calibration.exponents, data, &each, commit)
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
    #[error(transparent)]
    Lora(#[from] LoraError),
    #[error("only language models are trained in shares: cut this model by its layers")]
    Alone,
}

/// All parameters and their moments, before the first step.
fn state_of_all(weights: &Weights) -> FloatState {
    weights.iter().flat_map(|(name, matrix)| state_of(name, matrix.values())).collect()
}

/// A parameter and its moments, before the first step.
fn state_of(name: &str, values: &[f32]) -> impl Iterator<Item = (String, Vec<f64>)> + use<> {
    let values: Vec<f64> = values.iter().map(|w| f64::from(*w)).collect();
    let moments = language::MOMENTS.map(|moment| (format!("{name}.{moment}"), vec![0.0; values.len()]));
    moments.into_iter().chain([(name.to_owned(), values)])
}

fn layers(architecture: &Architecture, recipe: &Recipe) -> Vec<Layer> {
    let count = recipe.layer_count(architecture);
    let name = |layer: usize| match layer {
        0 if count == 1 => "model".to_owned(),
        layer if recipe.adapters.is_some() => format!("block {}", layer + 1),
        0 => "embedding".to_owned(),
        layer if layer + 1 == count => "head".to_owned(),
        layer => format!("block {layer}"),
    };
    let mut layers: Vec<Layer> = (0..count).map(|layer| Layer { name: name(layer), parameters: 0, bytes: 0 }).collect();
    let mut add = |parameter: &Parameter, is_trained: bool| {
        let count = u64::from(parameter.rows).saturating_mul(parameter.columns.into());
        let Some(layer) = layers.get_mut(recipe.layer_of(architecture, &parameter.name)) else { return };
        // Value and moments before and after (2 × 16 bytes), operands, a gradient, the sum of those before it, what
        // becomes of them. What is frozen is there as it is read, and transposed.
        let bytes = if is_trained { 32 + 12 + 8 + 24 } else { 4 };
        layer.bytes = layer.bytes.saturating_add(count.saturating_mul(bytes));
        layer.parameters = layer.parameters.saturating_add(if is_trained { count } else { 0 });
    };
    recipe.parameters(architecture).iter().for_each(|parameter| add(parameter, true));
    if recipe.adapters.is_some() {
        parameters(architecture).iter().for_each(|parameter| add(parameter, false));
    }
    let (sequences, tokens) = (u64::from(recipe.sequences), u64::from(recipe.tokens));
    // Of so many blocks at most.
    let blocks = if count == 1 { u64::from(architecture.layers) + 2 } else { 1 };
    for layer in &mut layers {
        // What is kept of each sequence until it is back, and attention's matrices.
        let kept = u64::from(architecture.width).saturating_mul(64).saturating_add(u64::from(architecture.hidden) * 24);
        let scores = u64::from(architecture.heads).saturating_mul(tokens).saturating_mul(16);
        layer.bytes = layer.bytes.saturating_add(blocks * sequences * tokens * kept.saturating_add(scores));
    }
    if let Some(head) = layers.last_mut() {
        // Logits, powers, probabilities, and the gradient as it is transposed and quantised.
        let logits = match architecture.output {
            Output::Classes(classes) => sequences.saturating_mul(classes.into()),
            _ => sequences.saturating_mul(tokens).saturating_mul(architecture.vocabulary.into()),
        };
        head.bytes = head.bytes.saturating_add(logits.saturating_mul(36));
    }
    layers
}
