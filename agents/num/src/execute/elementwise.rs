//! Rules N-13 to N-18.

use std::iter;

use tensorlink_types::Operator;

use super::{Rescale, collect, wide};
use crate::checked::Lookup;
use crate::error::OpError;
use crate::fixed::limit;
use crate::tensor::Tensor;

type Values = Result<Vec<i64>, OpError>;

pub(super) fn combine(op: &Operator, a: &Tensor, b: &Tensor, (ca, cb): (i64, i64), shift: i64) -> Values {
    let (round, b) = (Rescale::new(shift, op), wide(b));
    let pairs = wide(a).into_iter().zip(b.iter().cycle());
    collect(op, pairs.map(|(a, b)| round.apply(a.wrapping_mul(ca).wrapping_add(b.wrapping_mul(cb)))))
}

pub(super) fn scale(op: &Operator, a: &Tensor, c: i64, shift: i64) -> Values {
    let round = Rescale::new(shift, op);
    collect(op, wide(a).into_iter().map(|a| round.apply(a.wrapping_mul(c))))
}

pub(super) fn mul(op: &Operator, a: &Tensor, b: &Tensor, shift: i64) -> Values {
    let (round, b) = (Rescale::new(shift, op), wide(b));
    let pairs = wide(a).into_iter().zip(b.iter().cycle());
    collect(op, pairs.map(|(a, b)| round.apply(a.wrapping_mul(*b))))
}

pub(super) fn relu(op: &Operator, a: &Tensor) -> Values {
    collect(op, wide(a).into_iter().map(|a| a.max(0)))
}

pub(super) fn relu_grad(op: &Operator, dy: &Tensor, x: &Tensor) -> Values {
    let pairs = wide(dy).into_iter().zip(wide(x));
    collect(op, pairs.map(|(dy, x)| if x > 0 { dy } else { 0 }))
}

pub(super) fn lookup(op: &Operator, x: &Tensor, table: &Tensor, lookup: &Lookup) -> Values {
    let (round, table) = (Rescale::new(lookup.shift, op), wide(table));
    collect(op, wide(x).into_iter().map(|x| round.apply(interpolate(lookup, &table, x))))
}

fn interpolate(lookup: &Lookup, table: &[i64], x: i64) -> i64 {
    let fixed = Rescale { shift: lookup.input_shift, limit: limit(63) };
    let top = 1i64.wrapping_shl(lookup.log.wrapping_add(lookup.fraction_bits));
    let u = fixed.apply(x).wrapping_sub(lookup.low).clamp(0, top);
    let last = 1i64.wrapping_shl(lookup.log).wrapping_sub(1);
    let j = (u >> lookup.fraction_bits).min(last);
    blend(table, j, u.wrapping_sub(j << lookup.fraction_bits), lookup.fraction_bits)
}

/// `table[j]·(2^f − r) + table[j+1]·r`: at most 2^31 · 2^16.
pub(super) fn blend(table: &[i64], j: i64, rest: i64, fraction_bits: u32) -> i64 {
    let mut entries = iter::successors(usize::try_from(j).ok(), |j| j.checked_add(1)).map(|j| table.get(j).copied());
    let mut next = || entries.next().flatten().unwrap_or_default();
    let (low, high) = (next(), next());
    let unit = 1i64.wrapping_shl(fraction_bits);
    low.wrapping_mul(unit.wrapping_sub(rest)).wrapping_add(high.wrapping_mul(rest))
}
