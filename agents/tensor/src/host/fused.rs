//! Elementwise operators on words, without a stay in memory between widening and narrowing: what
//! transformers' activations are made of.

use tensorlink_num::operators::Lookup;

use super::block::{BLOCK, Precision};
use crate::simd::{Simd, multiversion};

/// Computes `f` of the elements of `a` and `b`, and rounds to `2^shift`, `1 ≤ shift ≤ 31` (rule N-2); within
/// 2^30 before.
#[inline(always)]
fn zip(a: &[i16], b: &[i16], to: Precision, out: &mut [i16], f: impl Fn(i32, i32) -> i32) {
    let (by, limit) = (to.shift as u32, to.limit as i32);
    let below_half = (1i32 << (by - 1)) - 1;
    for ((a, b), out) in a.iter().zip(b).zip(out) {
        let x = f((*a).into(), (*b).into());
        let odd = (x >> by) & 1;
        *out = ((x + below_half + odd) >> by).clamp(-limit, limit) as i16;
    }
}

multiversion! {
    fn combine_part(a: &[i16], b: &[i16], coefficients: (i32, i32), to: Precision, out: &mut [i16]) {
        let (ca, cb) = coefficients;
        zip(a, b, to, out, |a, b| ca * a + cb * b);
    }
}

multiversion! {
    fn mul_part(a: &[i16], b: &[i16], to: Precision, out: &mut [i16]) {
        zip(a, b, to, out, |a, b| a * b);
    }
}

multiversion! {
    fn run_part(a: &[i16], line: (i32, i32), to: Precision, out: &mut [i16]) {
        let (factor, term) = line;
        zip(a, a, to, out, |a, _| factor * a + term);
    }
}

/// Whether words rounded by this shift are computed here, accumulators being within what `i32` rescales.
pub(crate) const fn serves(shift: i32) -> bool {
    0 < shift && shift < i32::BITS as i32
}

/// Rule N-13 of words for which [`serves`] holds; `b` is repeated along `a`.
pub(crate) fn combine(simd: Simd, (a, ca): (&[i16], i32), (b, cb): (&[i16], i32), to: Precision, out: &mut [i16]) {
    for (a, out) in a.chunks(b.len()).zip(out.chunks_mut(b.len())) {
        combine_part(simd, a, b, (ca, cb), to, out);
    }
}

/// Rule N-15 of words for which [`serves`] holds; `b` is repeated along `a`.
pub(crate) fn mul(simd: Simd, a: &[i16], b: &[i16], to: Precision, out: &mut [i16]) {
    for (a, out) in a.chunks(b.len()).zip(out.chunks_mut(b.len())) {
        mul_part(simd, a, b, to, out);
    }
}

/// Rule N-38 of words for which [`serves`] holds, an element of `b` for each run of `a`.
pub(crate) fn row_combine(simd: Simd, (a, ca): (&[i16], i32), (b, cb): (&[i16], i32), to: Precision, out: &mut [i16]) {
    let run = a.len() / b.len();
    for ((a, out), b) in a.chunks(run).zip(out.chunks_mut(run)).zip(b) {
        run_part(simd, a, (ca, cb * i32::from(*b)), to, out);
    }
}

/// Rule N-39 of words for which [`serves`] holds, an element of `b` for each run of `a`.
pub(crate) fn row_mul(simd: Simd, a: &[i16], b: &[i16], to: Precision, out: &mut [i16]) {
    let run = a.len() / b.len();
    for ((a, out), b) in a.chunks(run).zip(out.chunks_mut(run)).zip(b) {
        run_part(simd, a, (i32::from(*b), 0), to, out);
    }
}

multiversion! {
    /// Entry and rest of each argument, not shifted (first half of rule N-18).
    fn cells(x: &[i16], entries: &mut [i32], rest: &mut [i32], attributes: &Lookup) {
        let Lookup { fraction_bits, log, .. } = *attributes;
        let (end, last, low) = (1i32 << (log + fraction_bits), (1i32 << log) - 1, attributes.low as i32);
        for ((x, entry), rest) in x.iter().zip(entries).zip(rest) {
            let u = (i32::from(*x) - low).clamp(0, end);
            *entry = (u >> fraction_bits).min(last);
            *rest = u - (*entry << fraction_bits);
        }
    }
}

multiversion! {
    /// Blends pairs of entries, the left in the low half of a word, and rounds to words.
    fn blend(pairs: &[i32], rest: &[i32], attributes: &Lookup, limit: i64, out: &mut [i16]) {
        let (by, limit, fraction_bits) = (attributes.shift as u32, limit as i32, attributes.fraction_bits);
        let below_half = (1i32 << (by - 1)) - 1;
        for ((pair, rest), out) in pairs.iter().zip(rest).zip(out) {
            let (left, right) = ((*pair << 16) >> 16, *pair >> 16);
            let x = (left << fraction_bits) + (right - left) * *rest;
            let odd = (x >> by) & 1;
            *out = ((x + below_half + odd) >> by).clamp(-limit, limit) as i16;
        }
    }
}

/// Rule N-18 of words that are not shifted, for which [`serves`] holds; `pairs` are neighbouring entries of the table.
pub(crate) fn lookup(simd: Simd, x: &[i16], pairs: &[i32], attributes: &Lookup, limit: i64, out: &mut [i16]) {
    let (mut entries, mut rest) = ([0i32; BLOCK], [0i32; BLOCK]);
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let (entries, rest) = (&mut entries[..x.len()], &mut rest[..x.len()]);
        cells(simd, x, entries, rest, attributes);
        for entry in entries.iter_mut() {
            *entry = pairs[*entry as usize];
        }
        blend(simd, entries, rest, attributes, limit, out);
    }
}
