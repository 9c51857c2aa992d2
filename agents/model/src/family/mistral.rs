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
