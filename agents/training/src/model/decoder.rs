//! What a language model is: a decoder made from scratch, or one that was trained elsewhere.

use serde::{Deserialize, Serialize};
use tensorlink_model::random::{Dimensions, gpt2, llama};
use tensorlink_model::{Architecture, Lora, Output};

use super::MAX_WIDTH;

/// Most blocks of a decoder that is trained.
pub const MAX_BLOCKS: u32 = 128;
/// Largest inner vector of an MLP.
const MAX_HIDDEN: u32 = 1 << 16;
/// A vocabulary longer than what one operator reduces is made a multiple of this, so that it has equal parts.
const VOCABULARY_MULTIPLE: u32 = 64;

/// A field, its value, and what is allowed instead.
pub(super) type Problem = (&'static str, u32, &'static str);

/// Whose conventions a decoder follows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// RMSNorm, rotary positions, a gated MLP, shared keys and values, no biases (Touvron et al. 2023).
    #[default]
    Llama,
    /// LayerNorm, learned positions, GELU, biases everywhere (Radford et al. 2019).
    Gpt2,
}

/// Shape and sizes of a decoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decoder {
    /// Llama's unless said.
    #[serde(default)]
    pub shape: Shape,
    /// Length of a token's vector, a multiple of the heads; of twice as many where positions are rotary.
    pub width: u32,
    /// Blocks of attention and MLP.
    pub layers: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads; divides `heads`. As many unless said. Older files call them `groups`.
    #[serde(default, alias = "groups", skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<u32>,
    /// Length of the MLP's inner vector.
    pub hidden: u32,
    /// Tokens of a sequence.
    pub context: u32,
    /// Whether the output weights are the embedding; as the shape has it unless said. A model that is so is a
    /// single stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tied: Option<bool>,
}

impl Decoder {
    /// Key and value heads.
    const fn kv_heads(&self) -> u32 {
        match self.kv_heads {
            Some(kv_heads) => kv_heads,
            None => self.heads,
        }
    }

    /// The decoder for a vocabulary of so many tokens; above 4096, of the next multiple of 64.
    pub fn architecture(&self, vocabulary: u32) -> Architecture {
        let whole = vocabulary.div_ceil(VOCABULARY_MULTIPLE).saturating_mul(VOCABULARY_MULTIPLE);
        let vocabulary = if vocabulary > MAX_WIDTH { whole } else { vocabulary };
        let Self { shape, width, layers, heads, hidden, context, tied, .. } = *self;
        let size = Dimensions { vocabulary, width, layers, heads, kv_heads: self.kv_heads(), hidden, context };
        let architecture = match shape {
            Shape::Llama => llama(size),
            Shape::Gpt2 => gpt2(size),
        };
        match tied {
            Some(tied) => Architecture { output: Output::Logits { tied }, ..architecture },
            None => architecture,
        }
    }

    /// What is out of range: field, value, and what is allowed.
    pub(super) fn problem(&self) -> Option<Problem> {
        let Self { shape, width, layers, heads, hidden, context, .. } = *self;
        let kv_heads = self.kv_heads();
        let (multiple, heads_allowed, kv_heads_allowed) = match shape {
            Shape::Llama => (2, "a number whose double divides width", "a divisor of heads"),
            Shape::Gpt2 => (1, "a divisor of width", "nothing: gpt2 has keys and values for each of its heads"),
        };
        let whole_heads = heads > 0 && width.checked_rem(heads.saturating_mul(multiple)) == Some(0);
        let shared = shape == Shape::Llama || kv_heads == heads;
        let whole_kv_heads = shared && kv_heads > 0 && heads.checked_rem(kv_heads) == Some(0);
        let checks = [
            ((1..=MAX_WIDTH).contains(&width), ("width", width, "1 to 4096")),
            ((1..=MAX_BLOCKS).contains(&layers), ("layers", layers, "1 to 128")),
            (whole_heads, ("heads", heads, heads_allowed)),
            (whole_kv_heads, ("kv_heads", kv_heads, kv_heads_allowed)),
            ((1..=MAX_HIDDEN).contains(&hidden), ("hidden", hidden, "1 to 65536")),
            ((2..=MAX_WIDTH).contains(&context), ("context", context, "2 to 4096")),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map(|(_, problem)| problem)
    }
}

/// A model that was trained elsewhere, and is trained on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Imported {
    /// A folder as Hugging Face publishes it, relative to the model file: its architecture, weights and tokenizer.
    pub folder: String,
    /// Tokens of a sequence, at most as many as the model takes.
    pub context: u32,
    /// Whether a head whose weights are the embedding gets a copy of its own, so that the model can be cut into stages.
    #[serde(default)]
    pub untie: bool,
    /// Adapters to train in place of its weights. Frozen, a head that is the embedding can be cut off it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<Lora>,
}

impl Imported {
    /// What is out of range.
    pub(super) fn problem(&self) -> Option<Problem> {
        let context = (!(2..=MAX_WIDTH).contains(&self.context)).then_some(("context", self.context, "2 to 4096"));
        context.or_else(|| self.lora.as_ref()?.problem())
    }

    /// The model of the folder as it is trained.
    pub fn architecture(&self, folder: &Architecture) -> Architecture {
        let output = if self.untie && self.lora.is_none() { Output::Logits { tied: false } } else { folder.output };
        Architecture { output, ..folder.clone() }
    }
}
