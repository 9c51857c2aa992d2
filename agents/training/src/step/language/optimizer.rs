//! AdamW (Loshchilov and Hutter, *Decoupled weight decay regularization*, 2019).
//!
//! Adam's step does not change if all gradients are multiplied by one number, and ε with them, so that the mean over
//! the batch is its sum, clipped at as many times the norm.

use super::clipping::Clipped;
use super::{Builder, NodeId, Weight, clipped};
use crate::step::build::precision_of_factors;
use crate::step::{Op, Phase, Precision};

/// `m/√v` lies within ±8.
const DIRECTION: Precision = Precision::Fixed { bits: 24, exponent: 20 };
/// What the root of a second moment of mean gradients is increased by.
pub const EPSILON: f64 = 1e-8;

/// Settings of AdamW.
#[derive(Clone, PartialEq, Debug)]
pub struct AdamW {
    /// Learning rate of each step; the last one's from then on.
    pub rates: Vec<f64>,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Weight decay of matrices.
    pub weight_decay: f64,
    /// Norm to which all gradients together are clipped.
    pub clip: f64,
}

impl AdamW {
    /// Learning rates, corrected for moments that begin at zero.
    fn corrected(&self) -> Vec<f64> {
        let correct = |(step, rate): (i32, &f64)| {
            let left = |beta: f64| 1.0 - libm::pow(beta, f64::from(step));
            rate * libm::sqrt(left(self.beta2)) / left(self.beta1)
        };
        (1..).zip(&self.rates).map(correct).collect()
    }
}

/// What the step of a layer's parameters takes, the same for all of them.
#[derive(Clone, Copy, Debug)]
struct Factors {
    /// Of the gradients.
    share: NodeId,
    /// The learning rate, corrected.
    rate: NodeId,
    /// The share of a matrix that decays.
    decay: Option<NodeId>,
}

impl Builder<'_> {
    pub(super) fn update(&mut self) {
        let AdamW { rates, weight_decay, .. } = &self.recipe.optimizer;
        let corrected = self.recipe.optimizer.corrected();
        let decays: Option<Vec<f64>> =
            (*weight_decay > 0.0).then(|| rates.iter().map(|rate| rate * weight_decay).collect());
        let Clipped { sums, factors } = self.clip();
        for (layer, share) in factors {
            self.place = self.place_of(Phase::Update, layer);
            let factors = Factors {
                share,
                rate: self.schedule("rate", &corrected),
                decay: decays.as_ref().map(|decays| self.schedule("decay", decays)),
            };
            let mine = self.weights.iter().filter(|(_, weight)| weight.layer == layer);
            let mine: Vec<(String, Weight)> = mine.map(|(name, weight)| (name.clone(), *weight)).collect();
            for (name, weight) in mine {
                if let Some(gradient) = sums.get(&name) {
                    self.step_of(&name, &weight, *gradient, &factors);
                }
            }
        }
    }

    fn step_of(&mut self, name: &str, weight: &Weight, gradient: NodeId, factors: &Factors) {
        let (value, Some([first, second])) = (weight.value, weight.moments) else { return };
        let AdamW { beta1, beta2, .. } = self.recipe.optimizer;
        let part = |part: &str| format!("{name}.{part}");
        let gradient = self.like(&part("grad.clipped"), Op::Mul, &[gradient, factors.share], clipped(name));
        let take = Op::Combine { fa: beta1, fb: 1.0 - beta1 };
        let first_next = self.like(&part("first.next"), take, &[first, gradient], Precision::Like(first));
        let square = self.like(&part("grad.square"), Op::Mul, &[gradient, gradient], Precision::Exact { terms: 1 });
        let take = Op::Combine { fa: beta2, fb: 1.0 - beta2 };
        let second_next = self.like(&part("second.next"), take, &[second, square], Precision::Like(second));
        let ratio = Op::Ratio { epsilon: EPSILON * self.labels() };
        let direction = self.like(&part("direction"), ratio, &[first_next, second_next], DIRECTION);
        let change = self.like(&part("change"), Op::Mul, &[direction, factors.rate], Precision::Like(value));
        let descend = Op::Combine { fa: 1.0, fb: -1.0 };
        let mut next = self.like(&part("next"), descend, &[value, change], Precision::Like(value));
        if let (Some(decay), true) = (factors.decay, self.dims(value).len() > 1) {
            let decay = self.like(&part("decay"), Op::Mul, &[value, decay], Precision::Like(value));
            next = self.like(&part("decayed"), descend, &[next, decay], Precision::Like(value));
        }
        for (current, next) in [(value, next), (first, first_next), (second, second_next)] {
            self.graph.state.push(crate::step::StateNode { layer: self.place.layer, current, next });
        }
    }

    /// The entry for the step of a schedule.
    fn schedule(&mut self, name: &str, values: &[f64]) -> NodeId {
        let precision = precision_of_factors(values);
        // SAFETY of the cast: a job has fewer than 2^31 steps.
        let rows = [values.len() as u32];
        let table = self.constant(&format!("schedule.{name}"), &rows, precision.clone(), || values.to_vec());
        self.op(&format!("layer{}.{name}", self.place.layer), Op::AtStep, &[table], vec![1], precision)
    }
}
