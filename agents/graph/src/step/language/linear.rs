//! Products with weights: `y = x·Wᵀ`, `dx = dy·W`, `dW = dyᵀ·x`, every operand quantised once.
//!
//! With W = diag(c)·V in mantissas V, `dy·W = (dy·diag(c))·V`: the gradient takes the weights' scales up before it is quantised
//! itself, so that the transposed mantissas serve as they are. Likewise for the scales of x, and dW.

use super::{Builder, Quantised, Weight, master, part_of_sum, wide};
use crate::step::{Class, NodeId, Op, Phase, Precision};
use crate::transformer::parameters;

/// The margin-free part of a quantised row: its mantissas lie in `[−1, 1]`.
const fn fraction(bits: u8) -> Precision {
    // SAFETY of the cast: at most 16.
    Precision::Fixed { bits, exponent: bits.saturating_sub(1) as i16 }
}

impl Builder<'_> {
    /// State and operands of every parameter.
    pub(super) fn prepare(&mut self) {
        for parameter in parameters(self.architecture) {
            let layer = super::layer_of(self.architecture, &parameter.name);
            self.at(Phase::Prepare, layer);
            let dims = parameter.dims();
            let name = parameter.name.as_str();
            let value = self.leaf(name, Op::State, dims.clone(), master(Class::Weight));
            let first = self.leaf(&format!("{name}.first"), Op::State, dims.clone(), master(Class::Velocity));
            let second = self.leaf(&format!("{name}.second"), Op::State, dims, super::clipped_squared(name));
            let quantised = match parameter.rows {
                1 => Some(self.vector(name, value)),
                _ if name == "embedding.tokens" => None,
                _ => Some(self.matrix(name, value)),
            };
            self.weights.insert(name.to_owned(), Weight { layer, leaves: [value, first, second], quantised });
        }
    }

    fn matrix(&mut self, name: &str, value: NodeId) -> Quantised {
        let cast = self.like(&format!("{name}.cast"), Op::Cast, &[value], wide(Class::Operand));
        self.quantise(name, cast)
    }

    fn vector(&mut self, name: &str, value: NodeId) -> Quantised {
        let cast = self.like(&format!("{name}.cast"), Op::Cast, &[value], super::narrow(Class::Operand));
        Quantised { mantissas: cast, scale: cast }
    }

    /// Rows as fractions of their own largest magnitude.
    pub(super) fn quantise(&mut self, name: &str, x: NodeId) -> Quantised {
        let bits = self.recipe.operand_bits;
        let one = self.ones(1);
        let largest = self.by_row(&format!("{name}.largest"), Op::RowAbsMax, &[x], Precision::Like(x));
        let coarser = Precision::Coarser { than: x, by: bits.saturating_sub(1) };
        let scale = self.like(&format!("{name}.scale"), Op::Ceiling, &[largest, one], coarser);
        let mantissas = self.like(&format!("{name}.quantised"), Op::Normalize, &[x, scale], fraction(bits));
        Quantised { mantissas, scale }
    }

    /// `x·Wᵀ`.
    pub(super) fn linear(&mut self, name: &str, x: Quantised, precision: Precision) -> NodeId {
        let Some(weight) = self.operand(name) else { return x.mantissas };
        let dims = vec![self.recipe.tokens, self.graph.node(weight.mantissas).dims.first().copied().unwrap_or(1)];
        let inputs = [x.mantissas, weight.mantissas, x.scale, weight.scale];
        self.op(name, Op::ScaledMatMul, &inputs, dims, precision)
    }

    /// Takes in the gradient by W; gives the one by x.
    pub(super) fn linear_gradient(&mut self, name: &str, x: Quantised, dy: NodeId) -> NodeId {
        let Some(weight) = self.operand(name) else { return dy };
        let inputs = self.row(weight.mantissas);
        let ones = self.ones(inputs);
        let part = |part: &str| format!("{name}.grad.{part}");

        let by_token = self.like(&part("by_token"), Op::RowMul, &[dy, x.scale], wide(Class::Gradient));
        let by_token = self.transpose(by_token);
        let by_token = self.quantise(&part("by_token"), by_token);
        let columns = self.transpose(x.mantissas);
        let dims = self.dims(weight.mantissas);
        let operands = [by_token.mantissas, columns, by_token.scale, ones];
        let dw = self.op(
            &format!("{name}.weight.grad"),
            Op::ScaledMatMul,
            &operands,
            dims,
            part_of_sum(&format!("{name}.weight")),
        );
        self.gradient(&format!("{name}.weight"), dw);

        let by_output = self.like(&part("by_output"), Op::Mul, &[dy, weight.scale], wide(Class::Gradient));
        let by_output = self.quantise(&part("by_output"), by_output);
        let place = self.place;
        self.place.phase = Phase::Prepare;
        let columns = self.transpose(weight.mantissas);
        self.place = place;
        let operands = [by_output.mantissas, columns, by_output.scale, ones];
        let dims = vec![self.recipe.tokens, inputs];
        self.op(&format!("{name}.input.grad"), Op::ScaledMatMul, &operands, dims, wide(Class::Gradient))
    }

    fn operand(&self, name: &str) -> Option<Quantised> {
        self.weights.get(&format!("{name}.weight")).and_then(|weight| weight.quantised)
    }
}
