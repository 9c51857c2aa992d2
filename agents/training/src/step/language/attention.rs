//! Attention over one sequence.

use tensorlink_model::{Norm, Placement, Positions, Rotary};

use super::dropout::{Dropped, PROBABILITY_EXPONENT};
use super::norm::NormPass;
use super::{Builder, Quantised, narrow, wide};
use crate::step::build::PROBABILITY as POWERS;
use crate::step::{Class, NodeId, Op, Precision};

/// Bits and exponents of softmax (rule N-22).
const SUM: Precision = Precision::Fixed { bits: 32, exponent: 16 };
const PROBABILITY: Precision = Precision::Fixed { bits: super::NARROW_BITS, exponent: PROBABILITY_EXPONENT };
/// Of cosines and sines.
const TURNS: Precision = Precision::Fixed { bits: 16, exponent: 14 };

/// What the backward pass needs of an attention.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttentionPass {
    /// Before attention, on what it adds, and after its residual addition.
    norms: [Option<NormPass>; 3],
    input: Quantised,
    /// Of queries and keys, where they are normalised.
    head_norms: [Option<NormPass>; 2],
    rotated: [NodeId; 2],
    value: NodeId,
    probabilities: NodeId,
    /// What values are mixed by: the probabilities that are not dropped.
    shares: NodeId,
    mixed: Quantised,
}

impl Builder<'_> {
    /// `x` plus what its tokens take of each other.
    pub(super) fn attention(&mut self, layer: usize, x: NodeId) -> (AttentionPass, NodeId) {
        let name = |part: &str| format!("layers.{layer}.attention.{part}");
        let a = self.architecture;
        let (tokens, heads, causal) = (self.recipe.tokens, a.heads, a.causal);
        let (before, y) = self.norm_at(Placement::Before, &name("norm"), x);
        let input = self.quantise(&name("input"), y);
        let [(query_norm, query), (key_norm, key)] = ["query", "key"].map(|part| self.looked_up(&name(part), input));
        let value = self.linear(&name("value"), input, narrow(Class::Activation));
        let rotated = [("query", query, heads), ("key", key, a.kv_heads)].map(|(part, x, heads)| {
            let site = name(&format!("{part}.rotated"));
            self.rotate((layer, Turn::Forth), &site, x, heads, narrow(Class::Activation))
        });

        let dims = vec![heads, tokens, tokens];
        let scores = self.op(&name("scores"), Op::HeadScores { heads }, &rotated, dims, wide(Class::Activation));
        let divisor = a.score_divisor();
        let scores = self.within_window(layer, &name("scores"), scores, divisor);
        let scores = self.without_padding(&name("scores"), scores, divisor);
        let max = self.by_row(&name("max"), Op::RowMax { causal }, scores, Precision::Like(scores));
        let powers = self.like(&name("exp"), Op::ExpNeg { divisor, causal }, &[scores, max], POWERS);
        let sum = self.by_row(&name("sum"), Op::RowSum, powers, SUM);
        let probabilities = self.like(&name("softmax"), Op::Normalize, &[powers, sum], PROBABILITY);
        let shares = self.dropped_probabilities(layer, &name("softmax"), probabilities);
        let values = self.transpose(value);
        let dims = vec![tokens, a.query_width()];
        let mixed = self.op(&name("mixed"), Op::HeadMix { heads }, &[shares, values], dims, wide(Class::Activation));
        let mixed = self.quantise(&name("mixed"), mixed);
        let output = self.linear(&name("output"), mixed, wide(Class::Activation));
        let (added, output) = self.norm_at(Placement::Around, &name("output_norm"), output);
        let output = self.dropped(Dropped::Attention(layer), &name("output"), output, wide(Class::Activation));
        let y = self.sum(&name("residual"), x, output, wide(Class::Activation));
        let (after, y) = self.norm_at(Placement::After, &name("norm"), y);
        (
            AttentionPass {
                norms: [before, added, after],
                input,
                head_norms: [query_norm, key_norm],
                rotated,
                value,
                probabilities,
                shares,
                mixed,
            },
            y,
        )
    }

    pub(super) fn attention_gradient(&mut self, layer: usize, pass: &AttentionPass, dy: NodeId) -> NodeId {
        let name = |part: &str| format!("layers.{layer}.attention.{part}");
        let a = self.architecture;
        let (heads, gradient) = (a.heads, || wide(Class::Gradient));
        let [before, added, after] = &pass.norms;
        let dy = self.norm_at_gradient(&name("norm"), after.as_ref(), dy);
        let output = self.dropped(Dropped::Attention(layer), &name("output.grad"), dy, gradient());
        let output = self.norm_at_gradient(&name("output_norm"), added.as_ref(), output);
        let mixed = self.linear_gradient(&name("output"), pass.mixed, output);
        let mixed = self.like(&name("mixed.grad"), Op::Cast, &[mixed], narrow(Class::Gradient));

        // dS = P·(dP − Σ P·dP), over the divisor of the scores.
        let dims = self.dims(pass.probabilities);
        let dp = self.op(&name("softmax.grad"), Op::HeadScores { heads }, &[mixed, pass.value], dims, gradient());
        let dp = self.dropped(Dropped::Probabilities(layer), &name("softmax.grad"), dp, gradient());
        let along = self.like(&name("softmax.grad.along"), Op::Mul, &[dp, pass.probabilities], gradient());
        let along = self.by_row(&name("softmax.grad.sum"), Op::RowSum, along, gradient());
        let share = 1.0 / a.score_divisor();
        let across = Op::RowCombine { fa: share, fb: -share };
        let across = self.like(&name("softmax.grad.across"), across, &[dp, along], gradient());
        let ds = self.like(&name("scores.grad"), Op::Mul, &[across, pass.probabilities], narrow(Class::Gradient));

        let [query, key] = pass.rotated;
        let [of_scores, of_values] = [ds, pass.shares].map(|id| self.transpose(id));
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

        let [query_norm, key_norm] = pass.head_norms;
        let [dq, dk] = [("query", query_norm, dq), ("key", key_norm, dk)].map(|(part, norm, dy)| match norm {
            Some(norm) => self.norm_gradient(&name(&format!("{part}_norm")), &norm, dy),
            None => dy,
        });
        let [dq, dk, dv] = [("query", dq), ("key", dk), ("value", dv)]
            .map(|(part, dy)| self.linear_gradient(&name(part), pass.input, dy));
        let sum = self.sum(&name("input.grad.part"), dq, dk, gradient());
        let sum = self.sum(&name("input.grad"), sum, dv, gradient());
        let dx = self.norm_at_gradient(&name("norm"), before.as_ref(), sum);
        self.sum(&name("residual.grad"), dx, dy, gradient())
    }

    /// Queries or keys, not rotated; normalised head by head where the architecture does.
    fn looked_up(&mut self, name: &str, input: Quantised) -> (Option<NormPass>, NodeId) {
        if !self.architecture.query_key_norm {
            return (None, self.linear(name, input, narrow(Class::Activation)));
        }
        let y = self.linear(name, input, wide(Class::Activation));
        let (norm, y) = self.norm(&format!("{name}_norm"), Norm::Rms, y);
        (Some(norm), self.like(&format!("{name}.normed"), Op::Cast, &[y], narrow(Class::Activation)))
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

    fn rotate(
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
enum Turn {
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
