//! RMSNorm and LayerNorm.

use super::{Builder, narrow, part_of_sum, wide};
use crate::step::{Class, NodeId, Op, Precision};

/// Exponent of a gain that is all alike.
const EVEN_GAIN: Precision = Precision::Fixed { bits: 16, exponent: 8 };

/// What the backward pass needs of a norm.
#[derive(Clone, Copy, Debug)]
pub(super) struct NormPass {
    input: NodeId,
    normalised: NodeId,
}

impl Builder<'_> {
    /// `normalised(x)·gain`.
    pub(super) fn norm(&mut self, name: &str, x: NodeId) -> (NormPass, NodeId) {
        let width = self.row(x);
        let input = self.like(&format!("{name}.input"), Op::Cast, &[x], narrow(Class::Activation));
        let gain = self.constant(&format!("even.{width}"), &[width], EVEN_GAIN, || {
            vec![libm::sqrt(f64::from(width)); width as usize]
        });
        let none = self.constant(&format!("none.{width}"), &[width], EVEN_GAIN, || vec![0.0; width as usize]);
        let spread = Op::Norm(self.spread());
        let normalised =
            self.like(&format!("{name}.normalised"), spread, &[input, gain, none], narrow(Class::Activation));
        let y = match self.gain(name) {
            Some(gain) => self.like(name, Op::Mul, &[normalised, gain], wide(Class::Activation)),
            None => normalised,
        };
        (NormPass { input, normalised }, y)
    }

    /// With `n` the normalised row of length K and `u = dy·gain`: `dx = √K·ρ·(u − n·mean(u·n))`, ρ being the inverse norm.
    pub(super) fn norm_gradient(&mut self, name: &str, pass: &NormPass, dy: NodeId) -> NodeId {
        let part = |part: &str| format!("{name}.grad.{part}");
        let (gradient, length) = (wide(Class::Gradient), f64::from(self.row(dy)));
        let Some(gain) = self.gain(name) else { return dy };
        let by_gain = self.like(&part("by_gain"), Op::Mul, &[dy, pass.normalised], gradient.clone());
        let by_gain = self.transpose(by_gain);
        let by_gain =
            self.by_row(&format!("{name}.gain.grad"), Op::RowSum, &[by_gain], part_of_sum(&format!("{name}.gain")));
        self.gradient(&format!("{name}.gain"), by_gain);

        let u = self.like(&part("scaled"), Op::Mul, &[dy, gain], gradient.clone());
        let along = self.like(&part("along"), Op::Mul, &[u, pass.normalised], gradient.clone());
        let along = self.by_row(&part("along.sum"), Op::RowSum, &[along], gradient.clone());
        let along = self.like(&part("along.part"), Op::RowMul, &[pass.normalised, along], gradient.clone());
        let root = libm::sqrt(length);
        let across = Op::Combine { fa: root, fb: -root / length };
        let across = self.like(&part("across"), across, &[u, along], gradient.clone());
        let spread = Op::InverseNorm(self.spread());
        let inverse = self.by_row(&part("inverse"), spread, &[pass.input], wide(Class::Activation));
        self.like(&format!("{name}.input.grad"), Op::RowMul, &[across, inverse], gradient)
    }

    fn gain(&self, name: &str) -> Option<NodeId> {
        Some(self.weights.get(&format!("{name}.gain"))?.quantised?.mantissas)
    }
}
