//! The model graph as users write it: a stack of linear layers with activations, and how to train it.
//!
//! [`Model`] is the checked form of `model.json`; [`Network`] is the same once the data fixed its two ends; the
//! sub-module [`weights`] imports trained floats, [`language`] reads the files of language models, whose
//! [`decoder`] or [`encoder`] they describe.
//!
//! ```json
//! { "name": "digits",
//!   "layers": [{ "kind": "linear", "out": 128 }, { "kind": "relu" },
//!              { "kind": "linear", "out": 64 }, { "kind": "relu" }],
//!   "weights": "digits.safetensors",
//!   "optimizer": { "learning_rate": 0.05, "momentum": 0.9 },
//!   "batch_size": 64, "micro_batches": 4, "steps": 600, "operand_bits": 16, "seed": 7 }
//! ```
//! A last linear layer with one output per class is always appended. `weights` is optional. With `"warmup": 20` in the
//! optimizer the learning rate rises in so many steps, and then falls to a tenth.

pub mod decoder;
pub mod encoder;
pub mod language;
mod parse;
mod schedule;
pub mod weights;

use serde::{Deserialize, Serialize};
use tensorlink_types::operator::MAX_REDUCTION;
use thiserror::Error;

pub use decoder::{Decoder, Imported};
pub use encoder::Encoder;
pub use language::LanguageModel;
pub use weights::{LayerWeights, WeightsError};

/// Most linear layers of a model.
pub const MAX_LAYERS: usize = 64;
/// Most micro-batches of a step; each repeats the whole network's operators in the program.
pub const MAX_MICRO_BATCHES: u32 = 64;
/// Largest width of a layer and largest batch: both are reduced over (rule N-6).
pub const MAX_WIDTH: u32 = MAX_REDUCTION as u32;
/// Largest model file in bytes.
pub const MAX_MODEL_FILE: usize = 1 << 20;

/// The nonlinearity after a linear layer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `max(x, 0)`.
    Relu,
    /// `x·Φ(x)`, the exact form with the normal distribution function (Hendrycks & Gimpel, 2016).
    Gelu,
}

/// A hidden linear layer and what follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Hidden {
    /// Outputs.
    pub out: u32,
    /// Nonlinearity, if any.
    pub activation: Option<Activation>,
}

/// Stochastic gradient descent with momentum: `v ← momentum·v + g`, `w ← w − rate·v`, `g` the batch's mean gradient.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Optimizer {
    /// Largest learning rate, in `(0, 16]`.
    pub learning_rate: f64,
    /// Share of the velocity that survives a step, in `[0, 1)`.
    pub momentum: f64,
    /// Steps until the learning rate is reached; from there it falls to a tenth along a cosine. None: it is the same in
    /// every step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<u32>,
}

impl Optimizer {
    /// Learning rate of each of so many steps, where they differ.
    pub fn rates(&self, steps: u32) -> Option<Vec<f64>> {
        self.warmup.map(|warmup| schedule::rates(self.learning_rate, warmup, steps))
    }
}

/// A model file, checked. Valid by construction through [`Model::parse`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Model {
    name: String,
    hidden: Vec<Hidden>,
    weights: Option<String>,
    optimizer: Optimizer,
    batch_size: u32,
    micro_batches: u32,
    steps: u32,
    operand_bits: u8,
    seed: u64,
}

/// One linear layer of a network whose ends are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Linear {
    /// Inputs.
    pub input: u32,
    /// Outputs.
    pub output: u32,
    /// Nonlinearity, if any.
    pub activation: Option<Activation>,
}

/// A model together with the number of features and classes of its data.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// Linear layers in order; at least one, the last one without activation and with an output per class.
    pub layers: Vec<Linear>,
    /// How it is trained.
    pub optimizer: Optimizer,
    /// Learning rate of each step, where they differ.
    pub rates: Option<Vec<f64>>,
    /// Rows of a step.
    pub batch_size: u32,
    /// Micro-batches of a step; divides `batch_size`.
    pub micro_batches: u32,
    /// Bits of matmul operands: 8 or 16.
    pub operand_bits: u8,
}

/// Why a model was refused.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ModelError {
    /// Not JSON, or a field is missing, unknown or of the wrong type.
    #[error("{file}: {message}; compare with the example in the documentation of model files")]
    Syntax {
        /// The model file.
        file: String,
        /// What the parser says, with line and column.
        message: String,
    },
    /// The file is too large to be a model description.
    #[error(
        "{file} has {bytes} bytes, more than {MAX_MODEL_FILE}: weights belong in a safetensors file named by `weights`"
    )]
    TooLarge {
        /// The model file.
        file: String,
        /// Its size.
        bytes: usize,
    },
    /// A layer of a kind that no operator computes.
    #[error("{file}: layers[{layer}] is of unknown kind `{kind}`; use linear, relu or gelu")]
    UnknownLayer {
        /// The model file.
        file: String,
        /// Index in `layers`.
        layer: usize,
        /// What it says.
        kind: String,
    },
    /// An activation without a linear layer directly before it.
    #[error("{file}: layers[{layer}] is an activation that follows no linear layer; put a linear layer before it")]
    StrayActivation {
        /// The model file.
        file: String,
        /// Index in `layers`.
        layer: usize,
    },
    /// A layer whose width a single dot product cannot cover.
    #[error(
        "{what} is {width} wide; one output element may depend on at most {MAX_WIDTH} inputs, so that a contract can recompute it (rule N-6): use at most {MAX_WIDTH}"
    )]
    TooWide {
        /// Which layer or end of the network.
        what: String,
        /// Its width.
        width: u64,
    },
    /// A number outside what training can use.
    #[error("{file}: {field} is {value}; choose {allowed}")]
    OutOfRange {
        /// The model file.
        file: String,
        /// The field.
        field: String,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

impl Model {
    /// Name for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hidden layers in order.
    pub fn hidden(&self) -> &[Hidden] {
        &self.hidden
    }

    /// File of initial weights, relative to the model file.
    pub fn weights(&self) -> Option<&str> {
        self.weights.as_deref()
    }

    /// Steps of training.
    pub const fn steps(&self) -> u32 {
        self.steps
    }

    /// Bits of matmul operands, 8 or 16.
    pub const fn operand_bits(&self) -> u8 {
        self.operand_bits
    }

    /// Seed of initialisation and of the train/held-out split.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Rows of a step.
    pub const fn batch_size(&self) -> u32 {
        self.batch_size
    }

    /// Micro-batches of a step.
    pub const fn micro_batches(&self) -> u32 {
        self.micro_batches
    }

    /// Fixes both ends by the data.
    ///
    /// # Errors
    /// [`ModelError::TooWide`] if the data has more features or classes than a dot product may have inputs.
    pub fn network(&self, features: u32, classes: u32) -> Result<Network, ModelError> {
        for (what, width) in [("the feature row", features), ("the class layer", classes)] {
            if width == 0 || width > MAX_WIDTH {
                return Err(ModelError::TooWide { what: what.into(), width: width.into() });
            }
        }
        let last = Hidden { out: classes, activation: None };
        let mut input = features;
        let layers = self.hidden.iter().chain([&last]).map(|hidden| {
            let layer = Linear { input, output: hidden.out, activation: hidden.activation };
            input = hidden.out;
            layer
        });
        Ok(Network {
            layers: layers.collect(),
            optimizer: self.optimizer,
            rates: self.optimizer.rates(self.steps),
            batch_size: self.batch_size,
            micro_batches: self.micro_batches,
            operand_bits: self.operand_bits,
        })
    }
}

impl Network {
    /// Rows of a micro-batch.
    pub fn micro_rows(&self) -> u32 {
        self.batch_size / self.micro_batches.max(1)
    }

    /// Features of a row.
    pub fn features(&self) -> u32 {
        self.layers.first().map_or(0, |layer| layer.input)
    }

    /// Classes told apart.
    pub fn classes(&self) -> u32 {
        self.layers.last().map_or(0, |layer| layer.output)
    }

    /// Bytes that a stage needs for each linear layer: state, casts, gradients and the activations of all
    /// micro-batches. An estimate from above of what the compiled stage holds at once.
    pub fn layer_bytes(&self) -> Vec<u64> {
        let operand = u64::from(self.operand_bits) / 8;
        let batch = u64::from(self.batch_size);
        let bytes = |Linear { input, output, .. }: &Linear| {
            let (input, output) = (u64::from(*input), u64::from(*output));
            let weights = input.saturating_mul(output).saturating_add(output);
            // Master and velocity before and after the step (4 × 4), cast and transpose, gradient and its sum (2 × 8).
            let state = weights.saturating_mul(32 + 2 * operand);
            // Input and its transpose; sum (4 bytes), activation, gradient and its transpose, slope.
            let rows = input.saturating_mul(2 * operand).saturating_add(output.saturating_mul(8 + 4 * operand));
            state.saturating_add(batch.saturating_mul(rows))
        };
        self.layers.iter().map(bytes).collect()
    }
}

impl Linear {
    /// Name that operators and state of the layer carry: `fc1` for the first.
    pub fn name(index: usize) -> String {
        format!("fc{}", index + 1)
    }

    /// Name of something in a layer: `fc1.matmul`.
    pub fn site(index: usize, label: &str) -> String {
        format!("{}.{label}", Self::name(index))
    }
}

#[cfg(test)]
mod tests;
