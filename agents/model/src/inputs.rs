//! What meets weights, and in how many bits.
//!
//! A row of activations has 24 bits. Of these a product takes the highest 16, counted from the largest of the row: the
//! few activations of a trained model that are thousands of times larger than others cost nothing then. In the setting
//! `fast` it takes 8, or 11 where 8 would cost the most and 11 the least: a product of 11 bits by 8 takes the time of
//! two of 8 by 8, and no more memory. Of what rounding to 8 bits adds to the logits (power, untrained GPT-2 and Llama
//! of `tensorlink bench`), each input's own share, and its share of a Llama's multiplications:
//!
//! | input | GPT-2 | Llama | multiplications | bits in `fast` |
//! |---|---|---|---|---|
//! | of queries, keys and values | 6 % | 2 % | 15 % | 11 in GPT-2, which has no margin otherwise; 8 |
//! | of attention's output | 8 % | 1 % | 7 % | 11 |
//! | of the MLP | 5 % | 6 % | 40 % | 8 |
//! | of the MLP's output: few large elements in a row | 10 % | 26 % | 20 % | 11 |
//! | of the logits: nothing averages it out | 14 % | 17 % | 19 % | 11 |
//!
//! 11 bits, because any kernel sums 4096 products with bytes in 32 bits then.

use super::architecture::{Architecture, Norm};
use super::setting::Setting;

/// An input of products with weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Input {
    /// Of queries, keys and values.
    Attention,
    /// The same of a decoder that centres rows.
    CentredAttention,
    /// Of attention's output.
    Mixed,
    /// Of the MLP.
    Mlp,
    /// Of the MLP's output.
    Inner,
    /// Of the logits.
    Logits,
    /// Of dense layers on a text's vector.
    Text,
}

impl Input {
    /// Bits of its mantissas.
    pub(super) const fn bits(self, setting: Setting) -> u8 {
        match (setting, self) {
            (Setting::Fast, Self::Attention | Self::Mlp) => 8,
            (Setting::Fast, Self::CentredAttention | Self::Mixed | Self::Inner | Self::Logits | Self::Text) => 11,
            (Setting::Standard | Setting::Reference, _) => 16,
        }
    }

    /// Of queries, keys and values of an architecture.
    pub(super) const fn attention(a: &Architecture) -> Self {
        if a.causal && matches!(a.norm, Norm::Layer) { Self::CentredAttention } else { Self::Attention }
    }
}
