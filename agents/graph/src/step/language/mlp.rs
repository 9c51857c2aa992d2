//! The gated MLP: `down(silu(gate(x))·up(x))`.

use super::norm::NormPass;
use super::{Builder, Quantised, wide};
use crate::step::{Class, Function, NodeId, Op, Precision};

/// Of the derivative of the nonlinearity.
const SLOPE: Precision = Precision::Fixed { bits: 16, exponent: 14 };

/// What the backward pass needs of an MLP.
#[derive(Clone, Copy, Debug)]
pub(super) struct MlpPass {
    norm: NormPass,
    input: Quantised,
    gate: NodeId,
    activated: NodeId,
    up: NodeId,
    inner: Quantised,
}

impl Builder<'_> {
    /// `x` plus what the MLP makes of it.
    pub(super) fn mlp(&mut self, layer: usize, x: NodeId) -> (MlpPass, NodeId) {
        let name = |part: &str| format!("layers.{layer}.mlp.{part}");
        let activation = || wide(Class::Activation);
        let (norm, y) = self.norm(&name("norm"), x);
        let input = self.quantise(&name("input"), y);
        let gate = self.linear(&name("gate"), input, activation());
        let up = self.linear(&name("up"), input, activation());
        let activated = self.like(&name("activated"), Op::Lookup(Function::Silu), &[gate], activation());
        let inner = self.like(&name("inner"), Op::Mul, &[activated, up], activation());
        let inner = self.quantise(&name("inner"), inner);
        let down = self.linear(&name("down"), inner, activation());
        let y = self.sum(&name("residual"), x, down, activation());
        (MlpPass { norm, input, gate, activated, up, inner }, y)
    }

    pub(super) fn mlp_gradient(&mut self, layer: usize, pass: &MlpPass, dy: NodeId) -> NodeId {
        let name = |part: &str| format!("layers.{layer}.mlp.{part}");
        let gradient = || wide(Class::Gradient);
        let inner = self.linear_gradient(&name("down"), pass.inner, dy);
        let up = self.like(&name("up.grad"), Op::Mul, &[inner, pass.activated], gradient());
        let activated = self.like(&name("activated.grad"), Op::Mul, &[inner, pass.up], gradient());
        let slope = self.like(&name("slope"), Op::Lookup(Function::SiluDerivative), &[pass.gate], SLOPE);
        let gate = self.like(&name("gate.grad"), Op::Mul, &[activated, slope], gradient());
        let by_gate = self.linear_gradient(&name("gate"), pass.input, gate);
        let by_up = self.linear_gradient(&name("up"), pass.input, up);
        let sum = self.sum(&name("input.grad"), by_gate, by_up, gradient());
        let dx = self.norm_gradient(&name("norm"), &pass.norm, sum);
        self.sum(&name("residual.grad"), dx, dy, gradient())
    }
}
