//! Qwen 3.

use super::Family;
use super::llama::{self, Biases, Own, Slides};
use super::manner::{Manner, PAIRS, TOKENS, Tokenizer};

const OWN: Own = Own {
    head_width: Some(128),
    biases: Biases::Stated,
    mlp_bias: false,
    query_key_norm: true,
    slides: Slides::Stated,
};

pub(super) const MANNER: Manner = Manner {
    published: &[("qwen3", &["Qwen3ForCausalLM", "Qwen3Model"])],
    read: |fields| llama::read(fields, Family::Qwen3, &OWN),
    gguf: Some("qwen3"),
    paired: false,
    tokenizer: Tokenizer { files: &[TOKENS, PAIRS], cut: "qwen2", fairseq: false },
    ..llama::MANNER
};
