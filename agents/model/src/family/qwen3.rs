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

/// Its tiny model.
#[cfg(any(test, feature = "fixture"))]
pub(super) mod tiny {
    use serde_json::json;

    use super::super::llama::tiny::{self as llama, Own};
    use super::super::tiny::{Tiny, WIDE_HEAD};

    pub(in crate::family) fn folder(layers: usize) -> Tiny {
        let more = json!({
            "head_dim": WIDE_HEAD, "attention_bias": false, "use_sliding_window": false, "sliding_window": null });
        let own = Own { head: WIDE_HEAD, head_norms: true, ..Own::NONE };
        llama::written(("qwen3", "Qwen3ForCausalLM"), more, &own, layers)
    }
}
