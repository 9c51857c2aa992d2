//! Rules N-19 to N-23, N-28, N-31 and N-40.

use tensorlink_types::Operator;

use super::elementwise::blend;
use super::{Rescale, collect, rows, wide};
use crate::checked::{EXP_ARGUMENT_MAX, Norm, RECIPROCAL_EXPONENT, Visible};
use crate::error::OpError;
use crate::fixed::limit;
use crate::tensor::Tensor;

type Values = Result<Vec<i64>, OpError>;

pub(super) fn row_max(op: &Operator, a: &Tensor, depth: u64, visible: Visible) -> Values {
    let max = |(m, row): (u64, &[i64])| {
        let seen = row.iter().zip(0..visible.of_row(m, depth));
        seen.map(|(a, _)| *a).max().unwrap_or_default()
    };
    collect(op, (0u64..).zip(rows(&wide(a), depth)).map(max))
}

pub(super) fn row_abs_max(op: &Operator, a: &Tensor, depth: u64) -> Values {
    collect(op, rows(&wide(a), depth).map(|row| row.iter().map(|a| a.saturating_abs()).max().unwrap_or_default()))
}

pub(super) fn row_sum(op: &Operator, a: &Tensor, depth: u64, shift: i64) -> Values {
    let round = Rescale::new(shift, op);
    let sum = |row: &[i64]| row.iter().fold(0i64, |sum, a| sum.wrapping_add(*a));
    collect(op, rows(&wide(a), depth).map(|row| round.apply(sum(row))))
}

/// `fixed` is the multiplier and the rounding that make the table's argument.
pub(super) fn exp_neg(
    op: &Operator,
    [a, max, table]: [&Tensor; 3],
    depth: u64,
    fixed: (i64, Rescale),
    visible: Visible,
) -> Values {
    let (a, max, table) = (wide(a), wide(max), wide(table));
    let (multiplier, fixed) = fixed;
    let output = limit(op.output.bits());
    let exp = |a: i64, max: i64| {
        let z = max.wrapping_sub(a).max(0);
        let u = fixed.apply(z.wrapping_mul(multiplier)).min(EXP_ARGUMENT_MAX);
        let sum = blend(&table, (u & 0xffff) >> 8, u & 0xff, 8);
        Rescale { shift: (u >> 16).wrapping_add(8), limit: output }.apply(sum)
    };
    let row = |((m, row), max): ((u64, _), &i64)| {
        let (seen, max) = (visible.of_row(m, depth), *max);
        (0u64..).zip(<[i64]>::iter(row)).map(move |(k, a)| (k < seen).then_some((*a, max)))
    };
    let pairs = (0u64..).zip(rows(&a, depth)).zip(&max).flat_map(row);
    collect(op, pairs.map(|pair| pair.map_or(0, |(a, max)| exp(a, max))))
}

pub(super) fn normalize(op: &Operator, p: &Tensor, z: &Tensor, depth: u64, bits: u32) -> Values {
    let (p, z, limit) = (wide(p), wide(z), limit(op.output.bits()));
    let quotient = |p: i64, z: i64| {
        let twice = p.wrapping_mul(1i64.wrapping_shl(bits.wrapping_add(1)));
        // The divisor is positive, so the Euclidean quotient is the floor.
        twice.wrapping_add(z).wrapping_div_euclid(z.wrapping_mul(2)).clamp(limit.wrapping_neg(), limit)
    };
    let pairs = rows(&p, depth).zip(&z).flat_map(|(row, z)| row.iter().map(move |p| (*p, (*z).max(1))));
    collect(op, pairs.map(|(p, z)| quotient(p, z)))
}

pub(super) fn one_hot_sub(op: &Operator, p: &Tensor, label: &Tensor, depth: u64, one: i64, shift: i64) -> Values {
    let (round, p, label) = (Rescale::new(shift, op), wide(p), wide(label));
    let pairs =
        rows(&p, depth).zip(&label).flat_map(|(row, label)| (0i64..).zip(row).map(move |(k, p)| (*p, k == *label)));
    collect(op, pairs.map(|(p, hit)| round.apply(p.wrapping_sub(if hit { one } else { 0 }))))
}

pub(super) fn norm(op: &Operator, [x, gain, bias]: [&Tensor; 3], norm: &Norm) -> Values {
    let (round, x, gain, bias) = (Rescale::new(norm.shift, op), wide(x), wide(gain), wide(bias));
    let row = |row| {
        let scale = RowScale::new(row, norm);
        let pairs = <[i64]>::iter(row).zip(gain.iter().zip(&bias));
        pairs.map(move |(x, (gain, bias))| {
            let n = scale.apply(*x);
            round.apply(n.wrapping_mul(*gain).wrapping_add(bias.wrapping_shl(norm.bias_shift)))
        })
    };
    collect(op, rows(&x, norm.depth).flat_map(row))
}

pub(super) fn inverse_norm(op: &Operator, x: &Tensor, norm: &Norm) -> Values {
    let x = wide(x);
    let inverse = |row: &[i64]| {
        let RowScale { reciprocal, j, .. } = RowScale::new(row, norm);
        Rescale::new(norm.shift.wrapping_sub(j), op).apply(reciprocal)
    };
    collect(op, rows(&x, norm.depth).map(inverse))
}

/// What rule N-28 multiplies a row by: `n = rescale((unit·x − mean)·reciprocal, 30 + f − j)`.
#[derive(Clone, Copy)]
struct RowScale {
    unit: i64,
    mean: i64,
    reciprocal: i64,
    j: i64,
    round: Rescale,
}

impl RowScale {
    fn new(row: &[i64], norm: &Norm) -> Self {
        // At most 4096 elements, and squares below 2^60 whatever their bits, everything below 2^62.
        let (length, unit) = (row.len() as i64, norm.unit());
        let sum = row.iter().fold(0i64, |sum, x| sum.wrapping_add(*x));
        let squares = row.iter().fold(0i64, |sum, x| sum.wrapping_add(x.wrapping_mul(*x)));
        let half_up =
            sum.wrapping_mul(unit).wrapping_mul(2).wrapping_add(length).checked_div_euclid(length.wrapping_mul(2));
        let mean = if norm.center { half_up.unwrap_or_default() } else { 0 };
        let cross = mean.wrapping_mul(sum).wrapping_mul(unit).wrapping_mul(2);
        let squares = squares.wrapping_mul(unit).wrapping_mul(unit);
        let spread = squares.wrapping_sub(cross).wrapping_add(length.wrapping_mul(mean.wrapping_pow(2)));
        // A sum of squares and epsilon: at least 1, below 2^61.
        let v = spread.wrapping_add(norm.epsilon).max(1);
        let j = v.leading_zeros().saturating_sub(2) >> 1;
        let root = v.wrapping_shl(j.wrapping_mul(2)).isqrt();
        let reciprocal = (1i64 << RECIPROCAL_EXPONENT).checked_div(root).unwrap_or_default();
        let round = Rescale { shift: norm.reciprocal_shift().wrapping_sub(j.into()), limit: limit(norm.bits()) };
        Self { unit, mean, reciprocal, j: j.into(), round }
    }

    fn apply(&self, x: i64) -> i64 {
        self.round.apply(x.wrapping_mul(self.unit).wrapping_sub(self.mean).wrapping_mul(self.reciprocal))
    }
}
