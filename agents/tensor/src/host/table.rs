//! Piecewise-linear functions given by tables.

use super::block::{for_blocks, rescale_one, round_shift};
use super::elementwise::Precision;
use crate::instruction::Lookup;
use crate::simd::Simd;
use crate::tensor::{Slice, SliceMut};

/// Largest exponent of ExpNeg, in 16 fraction bits: beyond it the result is 0.
const EXP_MAX: i64 = 40 << 16;

/// Rule N-18 of one element.
fn lookup_one(x: i64, table: &[i64], attributes: &Lookup, limit: i64) -> i64 {
    let Lookup { input_shift, low, fraction_bits, shift, index_bits } = *attributes;
    let u = (rescale_one(x, input_shift, (1 << 62) - 1) - low).clamp(0, 1 << (index_bits + fraction_bits));
    let j = (u >> fraction_bits).min((1 << index_bits) - 1);
    let r = u - (j << fraction_bits);
    let (left, right) = (table[j as usize], table[j as usize + 1]);
    rescale_one(left * ((1 << fraction_bits) - r) + right * r, shift, limit)
}

/// Rule N-20 of one element, from the distance `z` to the row's maximum.
fn exp_one(z: i64, table: &[i64], multiplier: i64, input_shift: i32, limit: i64) -> i64 {
    let u = rescale_one(z * multiplier, input_shift, (1 << 62) - 1).min(EXP_MAX);
    let (n, j, r) = (u >> 16, (u >> 8 & 0xff) as usize, u & 0xff);
    round_shift(table[j] * (256 - r) + table[j + 1] * r, n as u32 + 8).clamp(-limit, limit)
}

/// A function of an integer between `low` and `high`: computed for each when that is less work than computing it for
/// `uses` elements.
struct Tabulated<F> {
    low: i64,
    values: Vec<i64>,
    function: F,
}

impl<F: Fn(i64) -> i64> Tabulated<F> {
    fn new(low: i64, high: i64, uses: usize, function: F) -> Self {
        let domain = high.saturating_sub(low).saturating_add(1);
        // A read from a large table costs about half of computing the element.
        let worth = usize::try_from(domain).is_ok_and(|n| n <= uses / 2);
        let values = if worth { (low..=high).map(&function).collect() } else { Vec::new() };
        Self { low, values, function }
    }

    fn apply(&self, block: &mut [i64]) {
        if self.values.is_empty() {
            for x in block {
                *x = (self.function)(*x);
            }
        } else {
            for x in block {
                *x = self.values[(*x - self.low) as usize];
            }
        }
    }
}

/// Rule N-18; `x_limit` bounds the elements of `x`.
pub(crate) fn lookup(
    simd: Simd,
    (x, x_limit): (Slice<'_>, i64),
    table: Slice<'_>,
    attributes: &Lookup,
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    let table = table.to_wide();
    let function = Tabulated::new(-x_limit, x_limit, x.len(), |x| lookup_one(x, &table, attributes, limit));
    for_blocks::<i64>(simd, out, |start, block| {
        x.load(simd, start, block);
        function.apply(block);
    });
}

/// Rule N-20; `distance` bounds how far an element can lie under its row's maximum, `row` is the length of a row,
/// `to.shift` the input shift.
pub(crate) fn exp_neg(
    simd: Simd,
    (a, max, table): (Slice<'_>, Slice<'_>, Slice<'_>),
    (row, distance): (usize, i64),
    multiplier: i64,
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let table = table.to_wide();
    let function = Tabulated::new(0, distance, a.len(), |z| exp_one(z, &table, multiplier, to.shift, to.limit));
    for_blocks::<i64>(simd, out, |start, block| {
        a.load(simd, start, block);
        for_rows(start, row, block, |m, _, part| {
            let top = max.get(m);
            for a in part {
                *a = (top - *a).max(0);
            }
        });
        function.apply(block);
    });
}

/// Splits the block that begins at element `start` where rows end: `f(row number, first column, elements)`.
pub(crate) fn for_rows<A>(start: usize, row: usize, mut block: &mut [A], mut f: impl FnMut(usize, usize, &mut [A])) {
    let (mut m, mut column) = (start / row, start % row);
    while !block.is_empty() {
        let (part, rest) = block.split_at_mut((row - column).min(block.len()));
        f(m, column, part);
        (m, column, block) = (m + 1, 0, rest);
    }
}
