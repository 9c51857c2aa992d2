//! The MLP: `down(f(up(x)))`, or gated, `down(f(gate(x))·up(x))`.

use tensorlink_model::{Activation, Placement};

use super::dropout::Dropped;
use super::norm::NormPass;
use super::{Builder, Quantised, wide};
use crate::step::{Class, Function, NodeId, Op, Precision};

/// Of the derivative of the nonlinearity.
const SLOPE: Precision = Precision::Fixed { bits: 16, exponent: 14 };

/// What the backward pass needs of an MLP.
#[derive(Clone, Copy, Debug)]
pub(super) struct MlpPass {
    /// Before the MLP, on what it adds, and after its residual addition.
    norms: [Option<NormPass>; 3],
    input: Quantised,
    /// What is activated.
    first: NodeId,
    activated: NodeId,
    /// What the activated is multiplied by, in a gated MLP.
    up: Option<NodeId>,
    inner: Quantised,
}

impl Builder<'_> {
    /// `x` plus what the MLP makes of it.
    pub(super) fn mlp(&mut self, layer: usize, x: NodeId) -> (MlpPass, NodeId) {
        let name = |part: &str| format!("layers.{layer}.mlp.{part}");
        let activation = || wide(Class::Activation);
        let (before, y) = self.norm_at(Placement::Before, &name("norm"), x);
        let input = self.quantise(&name("input"), y);
        let first = self.linear(&name(self.first()), input, activation());
        let up = self.architecture.gated.then(|| self.linear(&name("up"), input, activation()));
        let activated = match self.functions() {
            Some([function, _]) => self.like(&name("activated"), Op::Lookup(function), &[first], activation()),
            None => self.like(&name("activated"), Op::Relu, &[first], Precision::Like(first)),
        };
        let inner = match up {
            Some(up) => self.like(&name("inner"), Op::Mul, &[activated, up], activation()),
            None => activated,
        };
        let inner = self.quantise(&name("inner"), inner);
        let down = self.linear(&name("down"), inner, activation());
        let (added, down) = self.norm_at(Placement::Around, &name("output_norm"), down);
        let down = self.dropped(Dropped::Mlp(layer), &name("down"), down, activation());
        let y = self.sum(&name("residual"), x, down, activation());
        let (after, y) = self.norm_at(Placement::After, &name("norm"), y);
        (MlpPass { norms: [before, added, after], input, first, activated, up, inner }, y)
    }

    pub(super) fn mlp_gradient(&mut self, layer: usize, pass: &MlpPass, dy: NodeId) -> NodeId {
        let name = |part: &str| format!("layers.{layer}.mlp.{part}");
        let gradient = || wide(Class::Gradient);
        let [before, added, after] = &pass.norms;
        let dy = self.norm_at_gradient(&name("norm"), after.as_ref(), dy);
        let down = self.dropped(Dropped::Mlp(layer), &name("down.grad"), dy, gradient());
        let down = self.norm_at_gradient(&name("output_norm"), added.as_ref(), down);
        let inner = self.linear_gradient(&name("down"), pass.inner, down);
        let activated = match pass.up {
            Some(up) => self.like(&name("activated.grad"), Op::Mul, &[inner, up], gradient()),
            None => inner,
        };
        let first = match self.functions() {
            Some([_, slope]) => {
                let slope = self.like(&name("slope"), Op::Lookup(slope), &[pass.first], SLOPE);
                self.like(&name("first.grad"), Op::Mul, &[activated, slope], gradient())
            }
            None => self.like(&name("first.grad"), Op::ReluGrad, &[activated, pass.first], Precision::Like(activated)),
        };
        let mut sum = self.linear_gradient(&name(self.first()), pass.input, first);
        if pass.up.is_some() {
            let up = self.like(&name("up.grad"), Op::Mul, &[inner, pass.activated], gradient());
            let by_up = self.linear_gradient(&name("up"), pass.input, up);
            sum = self.sum(&name("input.grad"), sum, by_up, gradient());
        }
        let dx = self.norm_at_gradient(&name("norm"), before.as_ref(), sum);
        self.sum(&name("residual.grad"), dx, dy, gradient())
    }

    /// The projection that is activated.
    const fn first(&self) -> &'static str {
        if self.architecture.gated { "gate" } else { "up" }
    }

    /// The tables of the nonlinearity and its derivative, where it needs any.
    const fn functions(&self) -> Option<[Function; 2]> {
        match self.architecture.activation {
            Activation::Gelu => Some([Function::Gelu, Function::GeluDerivative]),
            Activation::GeluTanh => Some([Function::GeluTanh, Function::GeluTanhDerivative]),
            Activation::Silu => Some([Function::Silu, Function::SiluDerivative]),
            Activation::Relu => None,
        }
    }
}
