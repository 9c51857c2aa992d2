//! One vector of a text: the first token's, through a dense layer and a hyperbolic tangent, as BERT and RoBERTa
//! have it.

use tensorlink_model::Output;

use super::dropout::Dropped;
use super::{Builder, Quantised, WIDE_BITS, wide};
use crate::step::{Class, Function, NodeId, Op, Precision};

/// Of a hyperbolic tangent.
const ACTIVATED: Precision = Precision::Fixed { bits: WIDE_BITS, exponent: WIDE_BITS as i16 - 2 };
/// Of the number of a row.
const ROW: Precision = Precision::Fixed { bits: 2, exponent: 0 };

/// What the backward pass needs of a pooler.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolerPass {
    input: Quantised,
    activated: NodeId,
}

impl Builder<'_> {
    /// `tanh(W·x + b)` of the first token's x, where a text has logits; x itself where each token has.
    pub(super) fn pooled(&mut self, x: NodeId) -> (Option<PoolerPass>, NodeId) {
        let Output::Classes(_) = self.architecture.output else { return (None, x) };
        let (first, ones) = (self.first_row(), self.ones(self.recipe.tokens));
        let dims = vec![1, self.architecture.width];
        let x = self.op("pooler.first", Op::Gather, &[x, ones, first], dims, wide(Class::Activation));
        let input = self.quantise("pooler.input", x);
        let y = self.linear("pooler", input, wide(Class::Activation));
        let activated = self.like("pooler.activated", Op::Lookup(Function::Tanh), &[y], ACTIVATED);
        let y = self.dropped(Dropped::Pooled, "pooler.activated", activated, wide(Class::Activation));
        (Some(PoolerPass { input, activated }), y)
    }

    /// Takes in the gradients by W and b; gives the one by all tokens, which is nothing but for the first. With
    /// `y = tanh(z)`: `dz = dy − dy·y·y`.
    pub(super) fn pooled_gradient(&mut self, pass: Option<&PoolerPass>, dy: NodeId) -> NodeId {
        let Some(&PoolerPass { input, activated }) = pass else { return dy };
        let gradient = || wide(Class::Gradient);
        let dy = self.dropped(Dropped::Pooled, "pooler.activated.grad", dy, gradient());
        let once = self.like("pooler.activated.grad.once", Op::Mul, &[dy, activated], gradient());
        let twice = self.like("pooler.activated.grad.twice", Op::Mul, &[once, activated], gradient());
        let dz = self.like("pooler.grad", Op::Combine { fa: 1.0, fb: -1.0 }, &[dy, twice], gradient());
        let dx = self.linear_gradient("pooler", input, dz);
        let (first, columns) = (self.first_row(), self.transpose(dx));
        let dims = vec![self.recipe.tokens, self.architecture.width];
        self.op("pooler.first.grad", Op::GatherGrad, &[columns, first], dims, gradient())
    }

    /// The number of the first token's row.
    fn first_row(&mut self) -> NodeId {
        self.constant("first", &[1], ROW, || vec![0.0])
    }
}
