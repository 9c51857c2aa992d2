//! What a family's files have of their own.

use serde_json::Value;

use crate::architecture::{Architecture, Output};
use crate::config::{ConfigError, Fields};
use crate::gguf::{GgufError, Keys};
use crate::names::HEAD;

/// A model, and the window that all its attention slides, if it does.
pub(crate) type Read = (Architecture, Option<u32>);

/// What a family's files have of their own.
pub(crate) struct Manner {
    /// Names in `model_type`, each with its classes in `architectures`; the first of both are written.
    pub(crate) published: &'static [(&'static str, &'static [&'static str])],
    /// The fields of the model within a configuration.
    pub(crate) text: fn(Fields) -> Result<Fields, ConfigError>,
    /// Reads them.
    pub(crate) read: fn(&Fields) -> Result<Read, ConfigError>,
    /// Writes them; encoders have none, for theirs do not say how texts are pooled.
    pub(crate) write: Option<fn(&Architecture) -> Value>,
    /// The name in `general.architecture` of GGUF files; none where these bear the name of another family.
    pub(crate) gguf: Option<&'static str>,
    /// Keys of GGUF files that no other family has.
    pub(crate) known_keys: &'static [&'static str],
    /// The fields in the metadata of a GGUF file.
    pub(crate) keys: fn(&Keys<'_, '_>) -> Result<Value, GgufError>,
    /// Prefixes that all names of a folder may have: with a head around the model first; without; within a model that
    /// takes images as well.
    pub(crate) prefixes: &'static [&'static str],
    /// What files call a module; none for one that the family does not have.
    pub(crate) module: fn(&str) -> Option<String>,
    /// Whether a tensor, by its name without prefix and with it, plays no part.
    pub(crate) idle: fn(&Architecture, &str, &str) -> bool,
    /// Whether norms may be called as in TensorFlow's time.
    pub(crate) oldest_names: bool,
    /// Whether projections stand transposed, and those of queries, keys and values in one tensor.
    pub(crate) conv1d: bool,
    /// Whether GGUF files have the rows of queries and keys in the pairs that are rotated.
    pub(crate) paired: bool,
    /// What gains count from.
    pub(crate) gains_from: f32,
    /// The token that texts are padded with, where a configuration does not say.
    pub(crate) padding: u32,
    pub(crate) tokenizer: Tokenizer,
}

/// BERT's words, one a line.
pub const WORDS: &str = "vocab.txt";
/// Numbers of tokens by their texts.
pub const TOKENS: &str = "vocab.json";
/// Pairs of tokens that are joined, a line each, the first first.
pub const PAIRS: &str = "merges.txt";

/// What a family's tokenizer is made of where a folder has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tokenizer {
    /// Files that it can be made of, the likeliest first; pairs of tokens go with the tokens.
    pub files: &'static [&'static str],
    /// How texts are cut before bytes are joined, as GGUF files call it.
    pub cut: &'static str,
    /// Whether special tokens are those of fairseq, with its numbers.
    pub fairseq: bool,
}

impl Manner {
    /// Whether it continues texts.
    pub(crate) const fn decodes(&self) -> bool {
        self.write.is_some()
    }
}

/// A configuration that describes one model.
pub(super) fn alone(fields: Fields) -> Result<Fields, ConfigError> {
    Ok(fields)
}

/// Whether a tensor is the output weights of a tied model, whose equality is checked elsewhere, or of one that makes
/// vectors.
pub(super) fn tied(architecture: &Architecture, tensor: &str) -> bool {
    tensor == HEAD && architecture.output != (Output::Logits { tied: false })
}
