//! GGUF files, as llama.cpp has them: one file with what a Hugging Face folder says in many.
//!
//! | module | what lives there |
//! |---|---|
//! | `container` | the file: keys, values, tensors, all within its length |
//! | `metadata`, `value` | values by key and type |
//! | `blocks` | weights in blocks of small integers, as floats |
//! | `names` | what tensors are called, and how they are laid out |
//! | `config`, `keys` | the metadata in the words of `config.json`; by name and type |
//! | `rotary` | the stretching of rotary positions |
//! | [`file`](mod@file) | a file to be written |
//! | `error` | why a file is refused |
//!
//! Weights are imported as from any other file ([`import`](mod@super::import)); what is packed in blocks becomes 32-bit
//! floats first, by the arithmetic of ggml. What a file says of its tokenizer is left to whoever has one.

mod blocks;
mod config;
mod container;
mod error;
pub mod file;
mod keys;
mod metadata;
pub(super) mod names;
mod rotary;
#[cfg(test)]
mod tests;
mod value;

pub(super) use blocks::Blocks;
pub use config::{config, pooling};
pub use container::Gguf;
pub(super) use container::Stored;
pub use error::GgufError;
pub(crate) use keys::{Keys, unsupported};
pub(crate) use rotary::scaling;

/// What every file begins with. No safetensors file does: its header would be longer than any.
pub const MAGIC: &[u8] = b"GGUF";
/// The types of numbers that are read, for messages.
pub const SUPPORTED: &str = "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K";

/// Whether bytes begin as those of a GGUF file.
pub fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}
