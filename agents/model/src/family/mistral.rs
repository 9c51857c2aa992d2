//! Mistral. Its GGUF files say that they are Llama's.

use super::Family;
use super::llama::{self, Own, Slides};
use super::manner::Manner;

pub(super) const MANNER: Manner = Manner {
    published: &[("mistral", &["MistralForCausalLM", "MistralModel"])],
    read: |fields| llama::read(fields, Family::Mistral, &Own { slides: Slides::Always, ..Own::NONE }),
    gguf: None,
    paired: false,
    ..llama::MANNER
};

/// Its tiny model.
#[cfg(any(test, feature = "fixture"))]
pub(super) mod tiny {
    use serde_json::json;

    use super::super::llama::tiny::{self as llama, Own};
    use super::super::tiny::Tiny;

    pub(in crate::family) fn folder(layers: usize) -> Tiny {
        let more = json!({ "sliding_window": null });
        llama::written(("mistral", "MistralForCausalLM"), more, &Own::NONE, layers)
    }
}
