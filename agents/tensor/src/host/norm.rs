//! Norm: rows brought to a common scale (rule N-28), in one pass while a row is in the first-level cache; and that
//! scale (rule N-40).

use super::block::{BLOCK, rescale};
use super::elementwise::Precision;
use crate::instruction::Norm;
use crate::simd::{Simd, multiversion};
use crate::tensor::{Slice, SliceMut};

/// Limit of a normalised element, of 22 bits.
const LIMIT_22: i64 = (1 << 21) - 1;

/// What a row is normalised by: `μ`, `R`, and the places `34 − j`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row {
    mean: i64,
    reciprocal: i64,
    places: i32,
}

impl Row {
    fn new((center, epsilon): (bool, i64), (sum, squares): (i64, i64), length: usize) -> Self {
        let k = length as i64;
        // div(16·S, K) of rule N-3.
        let mean = if center { (32 * sum + k).div_euclid(2 * k) } else { 0 };
        let variance = (256 * squares - 32 * mean * sum + k * mean * mean + epsilon).max(1);
        // Between 1 and 2^62, so that `j` lies between 0 and 30 and the root between 2^30 and 2^31.
        let j = (variance.leading_zeros().saturating_sub(2)) / 2;
        let root = (variance << (2 * j)).unsigned_abs().isqrt() as i64;
        Self { mean, reciprocal: (1 << 54) / root, places: 34 - j as i32 }
    }
}

multiversion! {
    /// Sum and sum of squares of at most 4096 elements of at most 16 bits.
    fn moments(x: &[i32], sums: &mut (i64, i64)) {
        let sum: i32 = x.iter().sum();
        *sums = (i64::from(sum), x.iter().map(|x| i64::from(x * x)).sum());
    }
}

multiversion! {
    /// Second half of the rule for a part of a row; `bias` is shifted already.
    fn apply(x: &[i32], row: Row, factors: (&[i32], &[i64]), to: Precision, out: &mut [i64]) {
        let (gain, bias) = factors;
        let (mean, reciprocal) = (row.mean as i32, row.reciprocal as i32);
        for (out, x) in out.iter_mut().zip(x) {
            *out = i64::from(16 * x - mean) * i64::from(reciprocal);
        }
        rescale(out, row.places, LIMIT_22);
        for ((out, gain), bias) in out.iter_mut().zip(gain).zip(bias) {
            *out = i64::from(*out as i32) * i64::from(*gain) + bias;
        }
        rescale(out, to.shift, to.limit);
    }
}

/// Rule N-28; rows as long as `gain`.
pub(crate) fn norm(
    simd: Simd,
    x: Slice<'_>,
    (gain, bias): (Slice<'_>, Slice<'_>),
    attributes: &Norm,
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    let (length, to) = (gain.len(), Precision { shift: attributes.shift, limit });
    let mut factors = vec![0i32; length];
    gain.load(simd, 0, &mut factors);
    let mut bias = bias.to_wide();
    for bias in &mut bias {
        *bias <<= attributes.bias_shift;
    }
    let (mut row, mut buffer) = (vec![0i32; length], [0i64; BLOCK]);
    for start in (0..x.len()).step_by(length) {
        x.load(simd, start, &mut row);
        let mut sums = (0, 0);
        moments(simd, &row, &mut sums);
        let by = Row::new((attributes.center, attributes.epsilon), sums, length);
        for (i, x) in row.chunks(BLOCK).enumerate() {
            let range = i * BLOCK..i * BLOCK + x.len();
            let block = &mut buffer[..x.len()];
            apply(simd, x, by, (&factors[range.clone()], &bias[range]), to, block);
            out.store(simd, start + i * BLOCK, block);
        }
    }
}

/// Rule N-40, of every `run` elements.
pub(crate) fn inverse_norm(
    simd: Simd,
    (x, run): (Slice<'_>, usize),
    spread: (bool, i64),
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let mut row = vec![0i32; run];
    for m in 0..out.len() {
        x.load(simd, m * run, &mut row);
        let mut sums = (0, 0);
        moments(simd, &row, &mut sums);
        let Row { reciprocal, places, .. } = Row::new(spread, sums, run);
        let mut inverse = [reciprocal];
        // By `shift − j`.
        rescale(&mut inverse, to.shift + places - 34, to.limit);
        out.store(simd, m, &inverse);
    }
}
