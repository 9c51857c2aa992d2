//! Seed-OSS.

use super::Family;
use super::llama::{self, Biases, Own};
use super::manner::{Manner, PAIRS, TOKENS, Tokenizer};

const OWN: Own = Own { head_width: Some(128), biases: Biases::Inputs, ..Own::NONE };

pub(super) const MANNER: Manner = Manner {
    published: &[("seed_oss", &["SeedOssForCausalLM", "SeedOssModel"])],
    read: |fields| llama::read(fields, Family::SeedOss, &OWN),
    gguf: Some("seed_oss"),
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
        let more = json!({ "head_dim": WIDE_HEAD, "attention_bias": true, "attention_out_bias": false });
        let own = Own { head: WIDE_HEAD, biases: true, ..Own::NONE };
        llama::written(("seed_oss", "SeedOssForCausalLM"), more, &own, layers)
    }
}
