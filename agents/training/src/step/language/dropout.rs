//! Dropout of embeddings, of attention's probabilities, and of what blocks add to the residual stream, as GPT-2 and
//! BERT have it; and of the vector that classes are told by.
//!
//! The gradient is dropped by the very draws of what it is the gradient of: an element of either has the same place in
//! its tensor.

use super::Builder;
use crate::model::MAX_MICRO_BATCHES;
use crate::model::decoder::MAX_BLOCKS;
use crate::step::{NodeId, Op, Precision};

/// Exponent of the probabilities that values are mixed by, which dropout may take bits of.
pub(super) const PROBABILITY_EXPONENT: i16 = 15;

/// What is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dropped {
    Embedding,
    /// Of a block.
    Probabilities(usize),
    /// Of a block.
    Attention(usize),
    /// Of a block.
    Mlp(usize),
    /// The vector of a text.
    Pooled,
}

impl Dropped {
    /// No two of a model have the same number.
    const fn number(self) -> u32 {
        // SAFETY of the casts: a model has at most 128 blocks.
        match self {
            Self::Embedding => 0,
            Self::Probabilities(layer) => 1 + 3 * layer as u32,
            Self::Attention(layer) => 2 + 3 * layer as u32,
            Self::Mlp(layer) => 3 + 3 * layer as u32,
            Self::Pooled => 1 + 3 * MAX_BLOCKS,
        }
    }
}

impl Builder<'_> {
    /// What is left of x, or of a gradient by what was left; x itself where nothing is dropped.
    pub(super) fn dropped(&mut self, what: Dropped, site: &str, x: NodeId, precision: Precision) -> NodeId {
        if self.recipe.dropout <= 0.0 {
            return x;
        }
        // SAFETY of the cast: a share of at most 1.
        let keep = libm::rint((1.0 - self.recipe.dropout) * libm::exp2(32.0)) as u64;
        let stream = what.number().saturating_mul(MAX_MICRO_BATCHES).saturating_add(self.sequence);
        self.like(&format!("{site}.dropped"), Op::Dropout { keep: keep.max(1), stream }, &[x], precision)
    }

    /// Probabilities grow by what is dropped of them.
    pub(super) fn dropped_probabilities(&mut self, layer: usize, site: &str, probabilities: NodeId) -> NodeId {
        let growth = libm::ceil(-libm::log2(1.0 - self.recipe.dropout)) as i16;
        let exponent = PROBABILITY_EXPONENT.saturating_sub(growth);
        let precision = Precision::Fixed { bits: super::NARROW_BITS, exponent };
        self.dropped(Dropped::Probabilities(layer), site, probabilities, precision)
    }
}
