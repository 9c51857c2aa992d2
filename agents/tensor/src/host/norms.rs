//! Norm: rows brought to a common scale (rule N-28), in one pass while a row is in the first-level cache; and that
//! scale (rule N-40).

use tensorlink_num::fixed::limit;
use tensorlink_num::operators::{InverseNorm, Norm, Spread};
use tensorlink_program::EngineError;

use super::block::{BLOCK, Precision, rescale};
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut};

/// What a row is normalised by: `μ`, `R` and `j`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row {
    mean: i64,
    reciprocal: i64,
    j: i32,
}

impl Row {
    fn new(spread: &Spread, (sum, squares): (i64, i64), length: usize) -> Self {
        let (k, Spread { center, epsilon, places, .. }) = (length as i64, *spread);
        let (sum, squares) = (sum << places, squares << (2 * places));
        // div of rule N-3.
        let mean = if center { (2 * sum + k).div_euclid(2 * k) } else { 0 };
        let variance = (squares - 2 * mean * sum + k * mean * mean + epsilon).max(1);
        // Between 1 and 2^62, so that `j` lies between 0 and 30 and the root between 2^30 and 2^31.
        let j = (variance.leading_zeros().saturating_sub(2)) / 2;
        let root = (variance << (2 * j)).unsigned_abs().isqrt() as i64;
        Self { mean, reciprocal: (1 << 54) / root, j: j as i32 }
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
    /// The same of at most 24 bits.
    fn wide_moments(x: &[i32], sums: &mut (i64, i64)) {
        let square = |x: &i32| i64::from(*x) * i64::from(*x);
        *sums = (x.iter().map(|x| i64::from(*x)).sum(), x.iter().map(square).sum());
    }
}

/// Sum and sum of squares of a row of bytes, words, or of up to 24 bits.
fn sums_of(simd: Simd, from: Slice<'_>, row: &[i32]) -> (i64, i64) {
    let mut sums = (0, 0);
    match from {
        Slice::I8(_) | Slice::I16(_) => moments(simd, row, &mut sums),
        _ => wide_moments(simd, row, &mut sums),
    }
    sums
}

multiversion! {
    /// Second half of the rule for a part of a row; `bias` is shifted already.
    fn apply(x: &[i32], row: Row, norm: &Norm, factors: (&[i32], &[i64]), to: Precision, out: &mut [i64]) {
        let (gain, bias) = factors;
        let (mean, reciprocal, places) = (row.mean as i32, row.reciprocal as i32, norm.spread.places);
        // A deviation has at most 26 bits.
        for (out, x) in out.iter_mut().zip(x) {
            *out = i64::from((x << places) - mean) * i64::from(reciprocal);
        }
        rescale(out, norm.spread.reciprocal_shift() as i32 - row.j, limit(norm.spread.bits()));
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
    let (length, to) = (gain.len(), Precision { shift: attributes.shift as i32, limit });
    let mut factors = vec![0i32; length];
    gain.load(simd, 0, &mut factors);
    let mut bias = bias.to_wide();
    for bias in &mut bias {
        *bias <<= attributes.bias_shift;
    }
    let (mut row, mut buffer) = (vec![0i32; length], [0i64; BLOCK]);
    for start in (0..x.len()).step_by(length) {
        x.load(simd, start, &mut row);
        let by = Row::new(&attributes.spread, sums_of(simd, x, &row), length);
        for (i, part) in row.chunks(BLOCK).enumerate() {
            let range = i * BLOCK..i * BLOCK + part.len();
            let block = &mut buffer[..part.len()];
            apply(simd, part, by, attributes, (&factors[range.clone()], &bias[range]), to, block);
            out.store(simd, start + i * BLOCK, block);
        }
    }
}

/// Rule N-40, of every `run` elements.
pub(crate) fn inverse_norm(
    simd: Simd,
    (x, run): (Slice<'_>, usize),
    spread: &Spread,
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let mut row = vec![0i32; run];
    for m in 0..out.len() {
        x.load(simd, m * run, &mut row);
        let Row { reciprocal, j, .. } = Row::new(spread, sums_of(simd, x, &row), run);
        let mut inverse = [reciprocal];
        rescale(&mut inverse, to.shift - j, to.limit);
        out.store(simd, m, &inverse);
    }
}

impl OnHost for Norm {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        norm(on.simd, on.operand(0)?, (on.operand(1)?, on.operand(2)?), self, on.limit(), out);
        Ok(())
    }
}

impl OnHost for InverseNorm {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let x = (on.operand(0)?, self.spread.depth as usize);
        inverse_norm(on.simd, x, &self.spread, on.to(self.shift), out);
        Ok(())
    }
}
