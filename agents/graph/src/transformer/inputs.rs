//! What meets weights, and in how many bits.
//!
//! Weights have 8 bits everywhere. A row of activations gets a scale of its own and 8 bits, or 11 where 8 would cost
//! the most and 11 the least: a product of 11 bits by 8 takes the time of two of 8 by 8, and no more memory. Of what
//! rounding adds to the logits (power, untrained GPT-2 and Llama of `tensorlink bench`), each input's own share, and
//! its share of a Llama's multiplications:
//!
//! | input | GPT-2 | Llama | multiplications | bits |
//! |---|---|---|---|---|
//! | of queries, keys and values | 6 % | 2 % | 15 % | 11 in GPT-2, which has no margin otherwise; 8 |
//! | of attention's output | 8 % | 1 % | 7 % | 11 |
//! | of the MLP | 5 % | 6 % | 40 % | 8 |
//! | of the MLP's output: few large elements in a row | 10 % | 26 % | 20 % | 11 |
//! | of the logits: nothing averages it out | 14 % | 17 % | 19 % | 11 |
//!
//! 11 bits, because sums of 4096 products with both scales then just stay below 2^62, and any kernel sums them in
//! 32 bits.

use tensorlink_types::operator::MAX_REDUCTION;

use super::architecture::{Architecture, Norm};

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
    /// Of the logits by weights whose rows are too long for 11 bits, and stay whole.
    LongLogits,
}

impl Input {
    /// Bits of its mantissas, fractions of their row's scale.
    pub(super) const fn bits(self) -> u8 {
        match self {
            Self::Attention | Self::Mlp | Self::LongLogits => 8,
            Self::CentredAttention | Self::Mixed | Self::Inner | Self::Logits => 11,
        }
    }

    /// Of queries, keys and values of an architecture.
    pub(super) const fn attention(a: &Architecture) -> Self {
        if a.causal && matches!(a.norm, Norm::Layer) { Self::CentredAttention } else { Self::Attention }
    }

    /// Of the logits by an embedding of rows this long, which are not split: they are looked up as well.
    pub(super) const fn tied(width: u32) -> Self {
        if width as u64 <= Self::Logits.reduction() { Self::Logits } else { Self::LongLogits }
    }

    /// Most elements of a row that one operator reduces. Calldata is what proving one costs: 2816 elements of two bytes
    /// by as many of one stay within the 600,000 gas that 4096 by 4096 bytes take.
    pub(super) const fn reduction(self) -> u64 {
        if self.bits() <= 8 { MAX_REDUCTION } else { MAX_REDUCTION / 16 * 11 }
    }
}
