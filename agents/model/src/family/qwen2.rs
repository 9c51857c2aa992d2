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

/// Its tiny model.
#[cfg(any(test, feature = "fixture"))]
pub(super) mod tiny {
    use serde_json::json;

    use super::super::llama::tiny::{self as llama, Own};
    use super::super::tiny::Tiny;

    pub(in crate::family) fn folder(layers: usize) -> Tiny {
        let more = json!({
            "tie_word_embeddings": true, "use_sliding_window": false, "sliding_window": 4, "max_window_layers": 1 });
        let own = Own { output: false, biases: true, ..Own::NONE };
        llama::written(("qwen2", "Qwen2ForCausalLM"), more, &own, layers)
    }
}
