//! Qwen 2.

use super::Family;
use super::llama::{self, Biases, Own, Slides};
use super::manner::{Manner, PAIRS, TOKENS, Tokenizer};

pub(super) const MANNER: Manner = Manner {
    published: &[("qwen2", &["Qwen2ForCausalLM", "Qwen2Model"])],
    read: |fields| {
        llama::read(fields, Family::Qwen2, &Own { biases: Biases::Inputs, slides: Slides::Stated, ..Own::NONE })
    },
    gguf: Some("qwen2"),
    paired: false,
    tokenizer: Tokenizer { files: &[TOKENS, PAIRS], cut: "qwen2", fairseq: false },
    ..llama::MANNER
};
