//! The last norm, the pooler of texts, logits and cross entropy.

use super::norm::NormPass;
use super::pooler::PoolerPass;
use super::{Builder, Quantised, is_tied, wide};
use crate::step::build::PROBABILITY;
use crate::step::{Class, NodeId, Op, Precision};

/// Gradient of the loss by the logits, in `[−1, 1]`.
const SEED: Precision = Precision::Fixed { bits: super::WIDE_BITS, exponent: super::WIDE_BITS as i16 - 1 };

/// What the backward pass needs of the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadPass {
    norm: Option<NormPass>,
    pooler: Option<PoolerPass>,
    input: Quantised,
}

impl Builder<'_> {
    /// Logits and probabilities.
    pub(super) fn head(&mut self, x: NodeId) -> (HeadPass, (NodeId, NodeId)) {
        let (norm, y) = self.norm_if(self.architecture.placement.before(), "final.norm", x);
        let (pooler, y) = self.pooled(y);
        let input = self.quantise("head.input", y);
        let logits = self.linear("head", input, wide(Class::Activation));
        let max = self.by_row("head.max", Op::RowMax { causal: false }, logits, Precision::Like(logits));
        let powers = Op::ExpNeg { divisor: 1.0, causal: false };
        let powers = self.like("head.exp", powers, &[logits, max], PROBABILITY);
        let sum = self.exact_sum("head.sum", powers);
        let probabilities = self.like("head.softmax", Op::Normalize, &[powers, sum], PROBABILITY);
        (HeadPass { norm, pooler, input }, (logits, probabilities))
    }

    /// Of the sum of all labels' cross entropies: their number is divided by where gradients are taken up. Beside the
    /// gradient of x the one by the embedding, if that is the head's weights.
    pub(super) fn head_gradient(
        &mut self,
        pass: &HeadPass,
        probabilities: NodeId,
        labels: NodeId,
    ) -> (NodeId, Option<NodeId>) {
        let seed = self.like("head.logits.grad", Op::OneHotSub, &[probabilities, labels], SEED);
        let (dy, tied) = if is_tied(self.architecture) && self.is_trained("embedding.tokens") {
            let weights = self.weight_gradient("head", pass.input, seed);
            (self.input_gradient("head", seed), Some(weights))
        } else {
            (self.linear_gradient("head", pass.input, seed), None)
        };
        let dy = self.pooled_gradient(pass.pooler.as_ref(), dy);
        (self.norm_gradient_if("final.norm", pass.norm.as_ref(), dy), tied)
    }
}
