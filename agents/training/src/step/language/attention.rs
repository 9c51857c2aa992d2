//! Attention over one sequence.

use tensorlink_model::block::Input;
use tensorlink_model::{Positions, Rotary};

use super::dropout::{Dropped, PROBABILITY_EXPONENT};
use super::tape::Tape;
use super::{Builder, narrow, wide};
use crate::step::build::PROBABILITY as POWERS;
use crate::step::{Class, NodeId, Op, Precision};

/// Bits and exponents of softmax (rule N-22).
const SUM: Precision = Precision::Fixed { bits: 32, exponent: 16 };
const PROBABILITY: Precision = Precision::Fixed { bits: super::NARROW_BITS, exponent: PROBABILITY_EXPONENT };
/// Of cosines and sines.
const TURNS: Precision = Precision::Fixed { bits: 16, exponent: 14 };

impl Builder<'_> {
    /// What each token takes of the values.
    pub(super) fn mixed(&mut self, tape: &mut Tape, value: NodeId) -> NodeId {
        let name = |part: &str| tape.name(&format!("attention.{part}"));
        let a = self.architecture;
        let (layer, tokens, heads, causal) = (tape.layer, self.recipe.tokens, a.heads, a.causal);
        let dims = vec![heads, tokens, tokens];
        let scores = self.op(&name("scores"), Op::HeadScores { heads }, &tape.query_key, dims, wide(Class::Activation));
        let divisor = a.score_divisor();
        let scores = self.within_window(layer, &name("scores"), scores, divisor);
        let scores = self.without_padding(&name("scores"), scores, divisor);
        let max = self.by_row(&name("max"), Op::RowMax { causal }, scores, Precision::Like(scores));
        let powers = self.like(&name("exp"), Op::ExpNeg { divisor, causal }, &[scores, max], POWERS);
        let sum = self.by_row(&name("sum"), Op::RowSum, powers, SUM);
        let probabilities = self.like(&name("softmax"), Op::Normalize, &[powers, sum], PROBABILITY);
        let shares = self.dropped_probabilities(layer, &name("softmax"), probabilities);
        let values = self.transpose(value);
        let mixed = self.mix(&name("mixed"), shares, values, wide(Class::Activation));
        (tape.probabilities, tape.shares) = (probabilities, shares);
        mixed
    }

    /// The gradient by what attention took, given that by what it gave.
    pub(super) fn attention_gradient(&mut self, tape: &Tape, dy: NodeId) -> NodeId {
        let layer = tape.layer;
        let name = |part: &str| tape.name(&format!("attention.{part}"));
        let a = self.architecture;
        let (heads, gradient) = (a.heads, || wide(Class::Gradient));
        let mixed = self.linear_gradient(&name("output"), tape.operand(Input::Mixed), dy);
        let mixed = self.like(&name("mixed.grad"), Op::Cast, &[mixed], narrow(Class::Gradient));

        // dS = P·(dP − Σ P·dP), over the divisor of the scores.
        let dims = self.dims(tape.probabilities);
        let dp = self.op(&name("softmax.grad"), Op::HeadScores { heads }, &[mixed, tape.value], dims, gradient());
        let dp = self.dropped(Dropped::Probabilities(layer), &name("softmax.grad"), dp, gradient());
        let along = self.like(&name("softmax.grad.along"), Op::Mul, &[dp, tape.probabilities], gradient());
        let along = self.by_row(&name("softmax.grad.sum"), Op::RowSum, along, gradient());
        let share = 1.0 / a.score_divisor();
        let across = Op::RowCombine { fa: share, fb: -share };
        let across = self.like(&name("softmax.grad.across"), across, &[dp, along], gradient());
        let ds = self.like(&name("scores.grad"), Op::Mul, &[across, tape.probabilities], narrow(Class::Gradient));

        let [query, key] = tape.query_key;
        let [of_scores, of_values] = [ds, tape.shares].map(|id| self.transpose(id));
        let [keys, queries, mixed] = [key, query, mixed].map(|id| self.transpose(id));
        // What is rotated back is read in 16 bits.
        let turned = || match a.positions {
            Positions::Rotary(_) => narrow(Class::Gradient),
            Positions::Learned { .. } => gradient(),
        };
        let dq = self.mix(&name("query.rotated.grad"), ds, keys, turned());
        let dk = self.mix(&name("key.rotated.grad.heads"), of_scores, queries, turned());
        let dv = self.mix(&name("value.grad.heads"), of_values, mixed, gradient());
        let dk = self.grouped(&name("key.rotated.grad"), dk, turned());
        let dv = self.grouped(&name("value.grad"), dv, gradient());
        let dq = self.rotate((layer, Turn::Back), &name("query.grad"), dq, heads, gradient());
        let dk = self.rotate((layer, Turn::Back), &name("key.grad"), dk, a.kv_heads, gradient());

        let [dq, dk] = [("query", dq), ("key", dk)].map(|(part, dy)| self.head_norm_gradient(tape, part, dy));
        let input = tape.operand(Input::Attention);
        let [dq, dk, dv] =
            [("query", dq), ("key", dk), ("value", dv)].map(|(part, dy)| self.linear_gradient(&name(part), input, dy));
        let sum = self.sum(&name("input.grad.part"), dq, dk, gradient());
        self.sum(&name("input.grad"), sum, dv, gradient())
    }

    /// `Σ_s p[h,t,s]·v[h,d,s]` with as many values as heads, or fewer that are shared.
    fn mix(&mut self, site: &str, p: NodeId, values: NodeId, precision: Precision) -> NodeId {
        let a = self.architecture;
        let dims = vec![self.recipe.tokens, a.query_width()];
        self.op(site, Op::HeadMix { heads: a.heads }, &[p, values], dims, precision)
    }

    /// Sums over the heads that share keys and values.
    fn grouped(&mut self, site: &str, by_head: NodeId, precision: Precision) -> NodeId {
        let a = self.architecture;
        if a.heads == a.kv_heads {
            return by_head;
        }
        let dims = vec![self.recipe.tokens, a.key_width()];
        self.op(site, Op::GroupSum { heads: a.heads }, &[by_head], dims, precision)
    }

    pub(super) fn rotate(
        &mut self,
        (layer, turn): (usize, Turn),
        site: &str,
        x: NodeId,
        heads: u32,
        precision: Precision,
    ) -> NodeId {
        let (a, layer) = (self.architecture, number(layer));
        let Some(rotary) = a.rotary(layer) else { return x };
        let (tokens, width) = (self.recipe.tokens, rotary.width);
        let name = match (turn, a.local(layer)) {
            (Turn::Forth, None) => "rotary",
            (Turn::Back, None) => "rotary.back",
            (Turn::Forth, Some(_)) => "rotary.local",
            (Turn::Back, Some(_)) => "rotary.local.back",
        };
        let table = self.constant(name, &[tokens, width], TURNS, || turns(rotary, tokens, turn));
        self.like(site, Op::Rope { heads }, &[x, table], precision)
    }
}

/// A layer's number; a model has fewer than 2^32.
pub(super) fn number(layer: usize) -> u32 {
    u32::try_from(layer).unwrap_or(u32::MAX)
}

/// Which way a rotation goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    Forth,
    Back,
}

/// Cosines and sines of every token's angles.
fn turns(rotary: &Rotary, tokens: u32, turn: Turn) -> Vec<f64> {
    let (frequencies, amplitude) = (rotary.frequencies(), rotary.amplitude());
    let sign = if turn == Turn::Forth { amplitude } else { -amplitude };
    let row = |t: u32| {
        let angles = || frequencies.iter().map(move |frequency| f64::from(t) * frequency);
        let cosines = angles().map(|angle| amplitude * libm::cos(angle));
        cosines.chain(angles().map(|angle| sign * libm::sin(angle))).collect::<Vec<_>>()
    };
    (0..tokens).flat_map(row).collect()
}
