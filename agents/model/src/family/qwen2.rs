//! Qwen 2.

use super::Family;
use super::llama::{self, Biases, Own, Slides};
use super::manner::{Manner, Tokenizer};

pub(super) const MANNER: Manner = Manner {
    published: &[("qwen2", &["Qwen2ForCausalLM", "Qwen2Model"])],
    read: |fields| {
        llama::read(fields, Family::Qwen2, &Own { biases: Biases::Inputs, slides: Slides::Stated, ..Own::NONE })
    },
    gguf: Some("qwen2"),
    paired: false,
    tokenizer: Tokenizer { files: &["vocab.json", "merges.txt"], cut: "qwen2", fairseq: false },
    ..llama::MANNER
};
