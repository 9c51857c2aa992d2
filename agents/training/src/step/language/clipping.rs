//! Clipping by the norm of all gradients (Pascanu, Mikolov and Bengio, *On the difficulty of training recurrent neural
//! networks*, 2013).
//!
//! Squares are summed exactly, in one exponent for all, so that the norm is the same wherever a model is cut. Where it
//! is cut, the sum goes from stage to stage and back, in a micro-batch of its own after all others.

use std::collections::BTreeMap;

use super::{Builder, NodeId, is_of_text, narrow, part_of_sum, sum_site};
use crate::step::place::Place;
use crate::step::{Class, Op, Phase, Precision};

/// A fraction that clipping multiplies by.
const FRACTION: Precision = Precision::Fixed { bits: 17, exponent: 15 };
/// The sum of squares.
const SQUARES: Precision = Precision::Even { bits: 56, class: Class::Gradient };
const NORM: &str = "all.grad.norm";

/// What a step of the optimiser takes.
pub(super) struct Clipped {
    /// The gradient of each parameter, summed over all sequences.
    pub(super) sums: BTreeMap<String, NodeId>,
    /// By layer, what the gradients are multiplied by: the same number everywhere.
    pub(super) factors: BTreeMap<usize, NodeId>,
}

impl Builder<'_> {
    /// Sums squares over all gradients.
    pub(super) fn clip(&mut self) -> Clipped {
        let last = self.graph.micro_batches.saturating_sub(1);
        // What the neighbours wait for comes first in a pass: squares take up nobody's time but their own stage's.
        let (early, forward, backward) = if self.is_cut() {
            (Phase::Backward(last.saturating_sub(1)), Phase::Forward(last), Phase::Backward(last))
        } else {
            (Phase::Update, Phase::Update, Phase::Update)
        };
        let layers = 0..self.recipe.layer_count(self.architecture);
        let mut sums = BTreeMap::new();
        let mut total: Option<NodeId> = None;
        for layer in layers.clone() {
            self.place = self.place_of(early, layer);
            let names: Vec<String> =
                self.weights.iter().filter(|(_, w)| w.layer == layer).map(|(name, _)| name.clone()).collect();
            let mut own: Option<NodeId> = None;
            for name in names {
                let Some(gradient) = self.summed(&name) else { continue };
                for squares in self.squares(&name, gradient) {
                    own = Some(own.map_or(squares, |before| self.added(before, squares)));
                }
                sums.insert(name, gradient);
            }
            self.place = self.place_of(forward, layer);
            total = match (total, own) {
                (Some(before), Some(own)) => Some(self.added(before, own)),
                (Some(only), None) | (None, Some(only)) => Some(self.handed(only)),
                (None, None) => None,
            };
        }
        let limit = self.recipe.optimizer.clip * self.labels();
        let mut factors = BTreeMap::new();
        for layer in layers.rev() {
            let Some(sum) = total else { continue };
            self.place = self.place_of(backward, layer);
            total = Some(self.handed(sum));
            self.place = self.place_of(Phase::Update, layer);
            let site = format!("layer{layer}.grad.share");
            factors.extend(total.map(|sum| (layer, self.like(&site, Op::Shrink { limit }, &[sum], FRACTION))));
        }
        Clipped { sums, factors }
    }

    /// A place in the stage of a layer.
    pub(super) fn place_of(&self, phase: Phase, layer: usize) -> Place {
        Place { phase, layer: self.share.as_ref().map_or(layer, |share| share.stage(layer)) }
    }

    /// Whether the gradients are in more than one place.
    fn is_cut(&self) -> bool {
        match &self.share {
            Some(share) => share.is_cut(),
            None => self.recipe.layer_count(self.architecture) > 1,
        }
    }

    /// The gradient of a step: the sum over its sequences, which a single one has to be written as, too.
    fn summed(&mut self, name: &str) -> Option<NodeId> {
        let total = self.gradients.remove(name)?;
        let single = self.recipe.sequences == 1;
        Some(if single { self.like(&sum_site(name), Op::Cast, &[total], part_of_sum(name)) } else { total })
    }

    /// Sums of squares that make up those of a gradient.
    fn squares(&mut self, name: &str, gradient: NodeId) -> Vec<NodeId> {
        let part = |part: &str| format!("{name}.grad.{part}");
        let coarse = self.like(&part("coarse"), Op::Cast, &[gradient], narrow(Class::Gradient));
        let mut sums = self.reducible(&part("columns"), coarse);
        for sum in &mut sums {
            *sum = self.like(&part("squares"), Op::Mul, &[*sum, *sum], Precision::Exact { terms: 1 });
            while self.graph.node(*sum).elements() > 1 {
                *sum = self.exact_sum(&part("norm"), *sum);
            }
            // In the exponent of the whole.
            *sum = self.handed(*sum);
        }
        sums
    }

    fn added(&mut self, before: NodeId, squares: NodeId) -> NodeId {
        self.sum(NORM, before, squares, SQUARES)
    }

    fn handed(&mut self, sum: NodeId) -> NodeId {
        self.like(NORM, Op::Cast, &[sum], SQUARES)
    }

    /// Labels of a step: how many times as large as their mean the sum of gradients is.
    pub(super) fn labels(&self) -> f64 {
        let each = if is_of_text(self.architecture) { 1 } else { self.recipe.tokens };
        f64::from(each) * f64::from(self.recipe.sequences)
    }
}
