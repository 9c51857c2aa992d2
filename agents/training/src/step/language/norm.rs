//! RMSNorm and LayerNorm, of rows or of runs as long as the gain: heads.

use tensorlink_model::Norm;

use super::{Builder, wide};
use crate::step::{Class, NodeId, Op, Precision, Spread};

/// Exponent of a gain that is all alike.
const EVEN_GAIN: Precision = Precision::Fixed { bits: 16, exponent: 8 };

/// What the backward pass needs of a norm.
#[derive(Clone, Copy, Debug)]
pub(super) struct NormPass {
    kind: Norm,
    input: NodeId,
    normalised: NodeId,
}

impl Builder<'_> {
    /// A norm before all layers or after them; x itself where the architecture has none there.
    pub(super) fn norm_if(&mut self, has: bool, name: &str, x: NodeId) -> (Option<NormPass>, NodeId) {
        if !has {
            return (None, x);
        }
        let (pass, y) = self.norm(name, self.architecture.norm, x);
        (Some(pass), y)
    }

    /// The gradient by what was, or was not, normalised.
    pub(super) fn norm_gradient_if(&mut self, name: &str, pass: Option<&NormPass>, dy: NodeId) -> NodeId {
        match pass {
            Some(pass) => self.norm_gradient(name, pass, dy),
            None => dy,
        }
    }

    /// `normalised(x)·gain`, plus the bias where there is one. It takes x and gives it in all its bits: in trained
    /// decoders one channel of the first token is some thousands of times as large as all others, and fewer bits would
    /// leave these nothing.
    pub(super) fn norm(&mut self, name: &str, kind: Norm, x: NodeId) -> (NormPass, NodeId) {
        let learned = self.vector_of(&format!("{name}.gain"));
        let width = self.row(learned.unwrap_or(x));
        let gain = self.constant(&format!("even.{width}"), &[width], EVEN_GAIN, || {
            vec![libm::sqrt(f64::from(width)); width as usize]
        });
        let none = self.constant(&format!("none.{width}"), &[width], EVEN_GAIN, || vec![0.0; width as usize]);
        let spread = Op::Norm(self.spread(kind));
        let normalised = self.like(&format!("{name}.normalised"), spread, &[x, gain, none], wide(Class::Activation));
        let mut y = normalised;
        if let Some(gain) = learned {
            y = self.like(&format!("{name}.scaled"), Op::Mul, &[y, gain], wide(Class::Activation));
        }
        if let Some(bias) = self.vector_of(&format!("{name}.bias")) {
            y = self.sum(name, y, bias, wide(Class::Activation));
        }
        (NormPass { kind, input: x, normalised }, y)
    }

    /// With `n` the normalised run of length K and `u = dy·gain`: `dx = √K·ρ·(u − mean(u) − n·mean(u·n))`, ρ being the
    /// inverse norm; without `mean(u)` where the run's mean is not taken off.
    pub(super) fn norm_gradient(&mut self, name: &str, pass: &NormPass, dy: NodeId) -> NodeId {
        let part = |part: &str| format!("{name}.grad.{part}");
        let gradient = wide(Class::Gradient);
        let names = ["gain", "bias"].map(|part| format!("{name}.{part}"));
        let [gain_name, bias_name] = &names;
        let Some(gain) = self.vector_of(gain_name) else { return dy };
        if self.is_trained(gain_name) {
            let by_gain = self.like(&part("by_gain"), Op::Mul, &[dy, pass.normalised], gradient.clone());
            self.vector_gradient(gain_name, by_gain);
        }
        if self.is_trained(bias_name) {
            self.vector_gradient(bias_name, dy);
        }

        let (run, spread) = (self.row(gain), self.spread(pass.kind));
        let length = f64::from(run);
        let u = self.like(&part("scaled"), Op::Mul, &[dy, gain], gradient.clone());
        let along = self.like(&part("along"), Op::Mul, &[u, pass.normalised], gradient.clone());
        let along = self.by_run((&part("along.sum"), run), Op::RowSum, along, gradient.clone());
        let along = self.like(&part("along.part"), Op::RowMul, &[pass.normalised, along], gradient.clone());
        let root = libm::sqrt(length);
        let across = Op::Combine { fa: root, fb: -root / length };
        let mut across = self.like(&part("across"), across, &[u, along], gradient.clone());
        if spread.center {
            let mean = self.by_run((&part("mean"), run), Op::RowSum, u, gradient.clone());
            let take = Op::RowCombine { fa: 1.0, fb: -root / length };
            across = self.like(&part("centred"), take, &[across, mean], gradient.clone());
        }
        let inverse = Op::InverseNorm(spread);
        let inverse = self.by_run((&part("inverse"), run), inverse, pass.input, wide(Class::Activation));
        self.like(&format!("{name}.input.grad"), Op::RowMul, &[across, inverse], gradient)
    }

    const fn spread(&self, kind: Norm) -> Spread {
        Spread { center: matches!(kind, Norm::Layer), epsilon: self.architecture.epsilon }
    }
}
