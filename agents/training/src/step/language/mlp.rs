//! The MLP's nonlinearity, and its way back.

use tensorlink_model::Activation;
use tensorlink_model::block::Input;

use super::tape::Tape;
use super::{Builder, wide};
use crate::step::{Class, Function, NodeId, Op, Precision};

/// Of the derivative of the nonlinearity.
const SLOPE: Precision = Precision::Fixed { bits: 16, exponent: 14 };

impl Builder<'_> {
    /// The nonlinearity.
    pub(super) fn activated(&mut self, site: &str, x: NodeId) -> NodeId {
        match self.functions() {
            Some([function, _]) => self.like(site, Op::Lookup(function), &[x], wide(Class::Activation)),
            None => self.like(site, Op::Relu, &[x], Precision::Like(x)),
        }
    }

    /// The gradient by what the MLP took, given that by what it gave.
    pub(super) fn mlp_gradient(&mut self, tape: &Tape, dy: NodeId) -> NodeId {
        let name = |part: &str| tape.name(&format!("mlp.{part}"));
        let gradient = || wide(Class::Gradient);
        let (is_gated, input) = (self.architecture.gated, tape.operand(Input::Mlp));
        let inner = self.linear_gradient(&name("down"), tape.operand(Input::Inner), dy);
        let activated = if is_gated {
            self.like(&name("activated.grad"), Op::Mul, &[inner, tape.inner], gradient())
        } else {
            inner
        };
        let first = match self.functions() {
            Some([_, slope]) => {
                let slope = self.like(&name("slope"), Op::Lookup(slope), &[tape.first], SLOPE);
                self.like(&name("first.grad"), Op::Mul, &[activated, slope], gradient())
            }
            None => self.like(&name("first.grad"), Op::ReluGrad, &[activated, tape.first], Precision::Like(activated)),
        };
        if !is_gated {
            return self.linear_gradient(&name("up"), input, first);
        }
        let by_gate = self.linear_gradient(&name("gate"), input, first);
        let up = self.like(&name("up.grad"), Op::Mul, &[inner, tape.activated], gradient());
        let by_up = self.linear_gradient(&name("up"), input, up);
        self.sum(&name("input.grad"), by_gate, by_up, gradient())
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
