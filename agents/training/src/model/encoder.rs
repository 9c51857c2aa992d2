//! An encoder made from scratch, in the shape of BERT (Devlin et al. 2018): what tells texts apart.

use serde::{Deserialize, Serialize};
use tensorlink_model::random::{Dimensions, bert};
use tensorlink_model::{Architecture, Output};

use super::decoder::{Decoder, Problem, Shape};

/// Sizes of an encoder: LayerNorm after each addition, learned positions, GELU, biases everywhere, and a pooler before
/// its classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoder {
    /// Length of a token's vector, a multiple of the heads.
    pub width: u32,
    /// Blocks of attention and MLP.
    pub layers: u32,
    /// Heads.
    pub heads: u32,
    /// Length of the MLP's inner vector; four times the width unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<u32>,
    /// Tokens of a text; what is longer is cut.
    pub context: u32,
}

impl Encoder {
    const fn inner(&self) -> u32 {
        match self.hidden {
            Some(hidden) => hidden,
            None => self.width.saturating_mul(4),
        }
    }

    /// The encoder for a vocabulary of so many tokens, and so many classes.
    pub fn architecture(&self, vocabulary: u32, classes: u32) -> Architecture {
        let Self { width, layers, heads, context, .. } = *self;
        let size = Dimensions { vocabulary, width, layers, heads, kv_heads: heads, hidden: self.inner(), context };
        Architecture { output: Output::Classes(classes), ..bert(size) }
    }

    /// What is out of range: field, value, and what is allowed. A decoder of GPT-2's shape has the same bounds.
    pub(super) fn problem(&self) -> Option<Problem> {
        let Self { width, layers, heads, context, .. } = *self;
        let (shape, kv_heads, hidden, tied) = (Shape::Gpt2, None, self.inner(), None);
        Decoder { shape, width, layers, heads, kv_heads, hidden, context, tied }.problem()
    }
}
