//! Why weights were refused.

use thiserror::Error;

use super::super::gguf::GgufError;
use super::super::parameters::WeightsError;

/// Why the weights of a model folder were refused; what to do is in the message.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ImportError {
    /// A file is not safetensors, is truncated, or contradicts itself.
    #[error("{file} is not a whole safetensors file ({message}); download it again")]
    Syntax {
        /// The file.
        file: String,
        /// What the parser says.
        message: String,
    },
    /// A GGUF file that is not whole, or holds what is not read.
    #[error("{file}: {source}")]
    Gguf {
        /// The file.
        file: String,
        /// What is wrong.
        source: GgufError,
    },
    /// The index is not one.
    #[error("{INDEX} cannot be read ({0}); download it again", INDEX = super::INDEX)]
    Index(String),
    /// The index puts a tensor in a file that was not given.
    #[error("{file} is missing, where {INDEX} puts `{tensor}`; download it too", INDEX = super::INDEX)]
    IndexFile {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
    },
    /// The index puts a tensor in a file that does not hold it.
    #[error(
        "{file} lacks `{tensor}`, which {INDEX} puts there; the files are of different downloads, fetch them again",
        INDEX = super::INDEX
    )]
    IndexTensor {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
    },
    /// Two files hold one tensor.
    #[error("`{tensor}` stands in {first} and in {second}; remove the file that is not the model's")]
    Twice {
        /// The tensor.
        tensor: String,
        /// One file.
        first: String,
        /// The other.
        second: String,
    },
    /// A tensor that the model needs is in no file.
    #[error("no tensor `{tensor}` in {files}; config.json and weights do not belong together, or a file is missing")]
    Missing {
        /// The tensor.
        tensor: String,
        /// The files that were searched.
        files: String,
    },
    /// A tensor that no operator of the model uses, and that is not known to be idle.
    #[error(
        "{file} holds `{tensor}`, with which the model of config.json does not compute; config.json and weights do not belong together, or the model is a variant that is not supported"
    )]
    Unknown {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
    },
    /// A tensor of another type than floats of 16 or 32 bits.
    #[error("{file}: `{tensor}` holds {dtype}; take the model's original F32, F16 or BF16 weights")]
    Dtype {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Its type.
        dtype: String,
    },
    /// A tensor of another shape than the configuration says.
    #[error("{file}: `{tensor}` is {actual:?}, config.json needs {expected}; they do not belong together")]
    Shape {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// What the file holds.
        actual: Vec<usize>,
        /// What the configuration needs.
        expected: String,
    },
    /// NaN or an infinity.
    #[error("{file}: `{tensor}`[{element}] is {value}; the file is damaged or the training diverged")]
    NotFinite {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Row-major index of the element in the tensor as stored.
        element: u64,
        /// The value.
        value: f32,
    },
    /// The configuration ties the output to the embedding, but the file holds other output weights.
    #[error(
        "{file}: `{tensor}` differs from the token embedding, though config.json ties them; set tie_word_embeddings to false if the model has its own output weights"
    )]
    Untied {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
    },
    /// What was read is not what the architecture needs.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}
