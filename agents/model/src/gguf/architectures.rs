//! What files call the architectures that are read.

use super::super::architecture::Family;

/// Architectures, and the family whose configuration says the same. Mistral's files say that they are Llama's.
pub(super) const NAMES: [(&str, Family); 6] = [
    ("llama", Family::Llama),
    ("qwen2", Family::Qwen2),
    ("qwen3", Family::Qwen3),
    ("gemma3", Family::Gemma3),
    ("gpt2", Family::Gpt2),
    ("bert", Family::Bert),
];

/// All architectures, for messages.
pub(super) fn supported() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}
