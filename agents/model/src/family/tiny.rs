//! Sizes of the tiny models that tests are made with. Each family's file says at its end what such a model's files
//! hold, as its publishers write them, not as the importer expects them.

use serde_json::Value;

/// Rows of the embedding: more than the tokenizer has words, as is usual.
pub const VOCABULARY: usize = 16;
/// Layers.
pub const LAYERS: usize = 2;
/// Most tokens of a text.
pub const CONTEXT: usize = 10;

pub(crate) const WIDTH: usize = 8;
pub(super) const HIDDEN: usize = 12;
pub(super) const HEADS: usize = 2;
pub(super) const KV_HEADS: usize = 1;
/// Heads of Qwen 3 and Gemma 3 need not add up to their width.
pub(super) const WIDE_HEAD: usize = 6;

/// Names and shapes of tensors.
pub(super) type Shapes = Vec<(String, Vec<usize>)>;

/// What a tiny model's files hold.
pub(crate) struct Tiny {
    /// `config.json`.
    pub(crate) config: Value,
    /// The tensors.
    pub(crate) shapes: Shapes,
}
