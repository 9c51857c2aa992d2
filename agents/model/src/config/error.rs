//! Why a configuration was refused.

use thiserror::Error;

/// Why the configuration of a model folder was refused; what to do is in the message.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ConfigError {
    /// Not a JSON object.
    #[error("{file} cannot be read ({message}); download the model folder again")]
    Syntax {
        /// The file.
        file: &'static str,
        /// What the parser says, with line and column.
        message: String,
    },
    /// Too large to be a configuration.
    #[error("{file} has {bytes} bytes, more than {most}: this is no configuration; download the model folder again")]
    TooLarge {
        /// The file.
        file: &'static str,
        /// Its size.
        bytes: usize,
        /// Largest size.
        most: usize,
    },
    /// A field that the family needs is absent.
    #[error("{file} lacks {field}; take the file as the model's publisher wrote it")]
    Missing {
        /// The file.
        file: &'static str,
        /// The field.
        field: String,
    },
    /// A field of another JSON type.
    #[error("{file}: {field} is {value}, expected {expected}; take the file as the model's publisher wrote it")]
    Type {
        /// The file.
        file: &'static str,
        /// The field.
        field: String,
        /// What it holds, shortened.
        value: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A number outside what this program computes.
    #[error("config.json: {field} is {value}, supported is {allowed}; choose a model within these bounds")]
    OutOfRange {
        /// The field.
        field: String,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// A model of no known family.
    #[error("config.json describes `{0}`, which is of no known family; supported are {families}", families = super::families())]
    UnknownModel(String),
    /// `model_type` and `architectures` name two families.
    #[error(
        "config.json says model_type `{model_type}` and architectures `{architecture}`, two different families; take the file as the model's publisher wrote it"
    )]
    Disagreement {
        /// What `model_type` says.
        model_type: String,
        /// What `architectures` says.
        architecture: String,
    },
    /// A head that is neither embedding nor language modelling.
    #[error(
        "config.json describes `{architecture}`, whose head this program does not compute; supported are {supported}"
    )]
    Head {
        /// What `architectures` says.
        architecture: String,
        /// The classes of that family which are supported.
        supported: String,
    },
    /// A size that must be a multiple of another is not.
    #[error(
        "config.json: {whole} ({whole_value}) is not a multiple of {part} ({part_value}); take the file as the model's publisher wrote it"
    )]
    Division {
        /// Field of the size.
        whole: &'static str,
        /// The size.
        whole_value: u32,
        /// Field that should divide it.
        part: &'static str,
        /// The divisor.
        part_value: u32,
    },
    /// Rotation turns pairs of elements.
    #[error(
        "config.json: heads are {0} wide, but rotary positions turn pairs of elements; choose a model with an even head_dim"
    )]
    OddRotary(u32),
    /// A stretching of the context that no table computes.
    #[error("config.json: rope scaling `{0}` is not supported; supported are default, linear, llama3 and yarn")]
    Scaling(String),
    /// The ramp of Llama 3's stretching is empty.
    #[error("config.json: {field} high_freq_factor ({high}) must exceed low_freq_factor ({low})")]
    Ramp {
        /// The object they stand in.
        field: String,
        /// The lower bound, as written.
        low: String,
        /// The upper bound, as written.
        high: String,
    },
    /// A nonlinearity that no table computes.
    #[error(
        "config.json: activation `{0}` is not supported; supported are gelu, gelu_new, gelu_pytorch_tanh, silu and relu"
    )]
    Activation(String),
    /// An option that changes what the model computes.
    #[error("config.json: {field} = {value} is not supported, only {supported}; choose a model without it")]
    Unsupported {
        /// The field.
        field: String,
        /// Its value.
        value: String,
        /// The value that is supported.
        supported: String,
    },
    /// Weights that were quantised by another program.
    #[error(
        "config.json: the weights are quantised already (quantization_config); take the model's original f32, f16 or bf16 weights"
    )]
    Quantised,
    /// A dense layer after pooling that does not fit, or that is not computed.
    #[error("{file}: {reason}")]
    Dense {
        /// Its configuration.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A pooling that is not computed.
    #[error(
        "1_Pooling/config.json asks for {0}; supported are the mean, the weighted mean, the largest, the first and \
         the last token's"
    )]
    Pooling(String),
}
