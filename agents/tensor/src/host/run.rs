//! Runs of elementwise operators, a block at a time: what lies between them stays in the first-level cache.

use super::block::{Precision, rescale};
use super::quotient::ESTIMATED;
use super::roots::rounded_ratio;
use super::stream::fence;
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut};

/// Elements of a block: those of an optimiser's run, of which there are some sixteen, fill a first-level cache of
/// 32 KiB.
const BLOCK: usize = 256;

/// Elements from which on results are written past the caches: some megabytes, which nobody finds there again.
const STREAMED: usize = 1 << 19;

/// A block of one operand or result.
#[derive(Clone)]
#[repr(C, align(64))]
struct Block([i64; BLOCK]);

/// How an operand from outside lies along the elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spread {
    /// Repeated end to end; once, if it has as many elements.
    Repeated,
    /// Each element for a run of so many.
    Runs(usize),
}

/// What an operator computes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// `ca·a + cb·b`: rules N-13 and N-38.
    Combine(i64, i64),
    /// `c·a`: rule N-14.
    Scale(i64),
    /// `a·b`: rules N-15 and N-39; whether both fit 32 bits.
    Mul(bool),
    /// `a/√b`: rule N-42, of so many bits and a floor.
    Ratio(u32, i64),
}

impl Step {
    /// Whether results of this limit are computed here.
    pub(crate) const fn serves(self, limit: i64) -> bool {
        !matches!(self, Self::Ratio(..)) || limit < ESTIMATED
    }
}

/// An operator: slots are numbered from the first operand from outside to the last result.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) step: Step,
    pub(crate) slots: (usize, usize),
    pub(crate) to: Precision,
    /// Whether its result is written.
    pub(crate) kept: bool,
}

/// Computes `f` of the elements of `a` and `b`, and rescales it.
#[inline(always)]
fn zip(a: &[i64], b: &[i64], to: Precision, out: &mut [i64], f: impl Fn(i64, i64) -> i64) {
    let Precision { shift, limit } = to;
    if shift > 0 {
        let below_half = (1i64 << (shift - 1)) - 1;
        for ((a, b), out) in a.iter().zip(b).zip(out) {
            let x = f(*a, *b);
            let odd = (x >> shift) & 1;
            *out = ((x + below_half + odd) >> shift).clamp(-limit, limit);
        }
        return;
    }
    for ((a, b), out) in a.iter().zip(b).zip(&mut *out) {
        *out = f(*a, *b);
    }
    rescale(out, shift, limit);
}

multiversion! {
    fn combine(a: &[i64], b: &[i64], coefficients: (i64, i64), to: Precision, out: &mut [i64]) {
        let (ca, cb) = coefficients;
        zip(a, b, to, out, |a, b| ca * a + cb * b);
    }
}

multiversion! {
    fn scale(a: &[i64], c: i64, to: Precision, out: &mut [i64]) {
        zip(a, a, to, out, |a, _| c * a);
    }
}

multiversion! {
    fn mul(a: &[i64], b: &[i64], to: Precision, out: &mut [i64]) {
        zip(a, b, to, out, |a, b| a * b);
    }
}

multiversion! {
    /// The same of operands that fit 32 bits: a multiplication of those is cheaper.
    fn mul_narrow(a: &[i64], b: &[i64], to: Precision, out: &mut [i64]) {
        zip(a, b, to, out, |a, b| i64::from(a as i32) * i64::from(b as i32));
    }
}

multiversion! {
    fn ratio(a: &[i64], b: &[i64], by: (u32, i64), limit: i64, out: &mut [i64]) {
        for ((a, b), out) in a.iter().zip(b).zip(out) {
            *out = rounded_ratio(*a, *b, by, limit);
        }
    }
}

/// Computes a run: `inputs` from outside, `outputs` of the links that are kept, in order, all of as many elements.
pub(crate) fn run(simd: Simd, inputs: &[(Slice<'_>, Spread)], links: &[Link], outputs: &mut [SliceMut<'_>]) {
    let elements = outputs.first().map_or(0, SliceMut::len);
    let mut slots = vec![Block([0; BLOCK]); inputs.len() + links.len()];
    for ((input, _), Block(slot)) in inputs.iter().zip(&mut slots) {
        slot.fill(input.get(0));
    }
    for start in (0..elements).step_by(BLOCK) {
        let length = BLOCK.min(elements - start);
        for ((input, spread), Block(slot)) in inputs.iter().zip(&mut slots) {
            let slot = &mut slot[..length];
            match *spread {
                // Filled above.
                _ if input.len() == 1 => {}
                Spread::Repeated => input.load_repeated(simd, start, slot),
                Spread::Runs(run) => input.load_runs(simd, run, start, slot),
            }
        }
        let mut outputs = outputs.iter_mut();
        for (place, link) in links.iter().enumerate() {
            // Memory is fetched for the next block while this one is computed.
            if let Some((input, Spread::Repeated)) = inputs.get(place) {
                input.fetch(start + BLOCK, BLOCK);
            }
            let (before, after) = slots.split_at_mut(inputs.len() + place);
            let Block(out) = &mut after[0];
            let out = &mut out[..length];
            let (a, b) = (&before[link.slots.0].0[..length], &before[link.slots.1].0[..length]);
            match link.step {
                Step::Combine(ca, cb) => combine(simd, a, b, (ca, cb), link.to, out),
                Step::Scale(c) => scale(simd, a, c, link.to, out),
                Step::Mul(true) => mul_narrow(simd, a, b, link.to, out),
                Step::Mul(false) => mul(simd, a, b, link.to, out),
                Step::Ratio(bits, floor) => ratio(simd, a, b, (bits, floor), link.to.limit, out),
            }
            let output = if link.kept { outputs.next() } else { None };
            match output {
                Some(output) if elements >= STREAMED => output.stream(simd, start, out),
                Some(output) => output.store(simd, start, out),
                None => {}
            }
        }
    }
    fence();
}
