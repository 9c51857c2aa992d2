//! Texts shorter than a sequence: what follows their last token is padding, which nobody attends to.
//!
//! Its scores are lowered so far that integers give it no probability at all. So nothing of it reaches a token of the
//! text, nor, on the way back, does a gradient reach it: it moves no weight.

use super::{Builder, wide};
use crate::step::build::ceil_log2;
use crate::step::{Class, NodeId, Op, Precision};

/// By how much padding's scores are lowered, as logarithms of probabilities: far more than the 24 binary digits of
/// a power.
const LOWERED: f64 = 64.0;

impl Builder<'_> {
    /// The sequence's tokens, drawn where they are asked for: what a stage hands to the next has no room for them.
    pub(super) fn ids(&mut self) -> NodeId {
        let key = (self.place.layer, self.sequence);
        if let Some(drawn) = self.drawn.get(&key) {
            return *drawn;
        }
        let [ids, _] = self.data;
        let sample = Op::Sample { first_row: self.sequence };
        let drawn = self.op("tokens.sample", sample, &[ids], vec![1, self.recipe.tokens], Precision::Like(ids));
        self.drawn.insert(key, drawn);
        drawn
    }

    /// Scores, those of padding lowered by [`LOWERED`] times what scores are divided by.
    pub(super) fn without_padding(&mut self, name: &str, scores: NodeId, divisor: f64) -> NodeId {
        let Some(padding) = self.recipe.padding else { return scores };
        let ids = self.ids();
        let vocabulary = self.architecture.vocabulary;
        let lowered = libm::ceil(LOWERED * divisor);
        // SAFETY of the cast: a head is at most 4096 wide.
        let precision = Precision::Fixed { bits: ceil_log2(lowered as u32).saturating_add(2), exponent: 0 };
        let table = self.constant("padding", &[vocabulary, 1], precision.clone(), || {
            (0..vocabulary).map(|token| if token == padding { -lowered } else { 0.0 }).collect()
        });
        let ones = self.ones(vocabulary);
        let lower = self.op("padding.rows", Op::Gather, &[table, ones, ids], vec![self.recipe.tokens, 1], precision);
        self.sum(&format!("{name}.unpadded"), scores, lower, wide(Class::Activation))
    }
}
