//! What a token does not attend to, beside what comes after it: padding, which follows the last token of texts shorter
//! than a sequence, and what lies beyond the window of a layer that has one.
//!
//! Their scores are lowered so far that integers give them no probability at all. So nothing of it reaches the token,
//! nor, on the way back, does a gradient: padding moves no weight.

use super::attention::number;
use super::{Builder, wide};
use crate::step::build::ceil_log2;
use crate::step::{Class, NodeId, Op, Precision};

/// By how much such scores are lowered, as logarithms of probabilities: far more than the 24 binary digits of
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

    /// Scores, those beyond the layer's window lowered by as much.
    pub(super) fn within_window(&mut self, layer: usize, name: &str, scores: NodeId, divisor: f64) -> NodeId {
        let (a, tokens) = (self.architecture, self.recipe.tokens);
        let window = a.local(number(layer)).map(|local| local.window).filter(|window| *window < tokens);
        let Some(window) = window else { return scores };
        let lowered = libm::ceil(LOWERED * divisor);
        // SAFETY of the cast: scores are divided by at most 1024.
        let precision = Precision::Fixed { bits: ceil_log2(lowered as u32).saturating_add(2), exponent: 0 };
        let lower = self.constant("window", &[tokens, tokens], precision, || {
            let beyond = |m: u32, k: u32| m.saturating_sub(k) >= window;
            let row = |m: u32| (0..tokens).map(move |k| if beyond(m, k) { -lowered } else { 0.0 });
            (0..tokens).flat_map(row).collect()
        });
        self.sum(&format!("{name}.seen"), scores, lower, wide(Class::Activation))
    }
}
