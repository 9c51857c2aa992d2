//! Piecewise-linear functions given by tables.
//!
//! A block is computed in passes that vectorise (cell and rest, blend, rescale) around the one that does not (fetching
//! table entries). Where a tensor has more elements than its type has values, the function is computed once for each value.

use super::block::{BLOCK, for_blocks, rescale, rescale_block};
use super::elementwise::Precision;
use crate::instruction::Lookup;
use crate::simd::{Simd, multiversion};
use crate::tensor::{Slice, SliceMut};

/// Largest exponent of ExpNeg, in 16 fraction bits: beyond it the result is 0.
const EXP_MAX: i64 = 40 << 16;

/// Limit of the 63-bit intermediate of both rules.
const LIMIT_63: i64 = (1 << 62) - 1;

/// Where the elements of a block lie in their table.
struct Cells {
    /// How far past its entry an element lies; the entry's number is left in the element's place.
    rest: [i64; BLOCK],
    /// Places to round away at the end, for each element (ExpNeg).
    places: [i64; BLOCK],
    /// The entry after an element's own.
    next: [i64; BLOCK],
}

impl Cells {
    const fn new() -> Self {
        Self { rest: [0; BLOCK], places: [0; BLOCK], next: [0; BLOCK] }
    }

    /// Replaces entry numbers by `table[j]·(2^f − r) + table[j+1]·r`.
    fn interpolate(&mut self, simd: Simd, table: &[i64], block: &mut [i64], fraction_bits: u32) {
        for (x, next) in block.iter_mut().zip(&mut self.next) {
            // The passes before keep entry numbers below the last entry's.
            let j = *x as usize;
            (*x, *next) = (table[j], table[j + 1]);
        }
        blend(simd, block, &self.next, &self.rest, fraction_bits);
    }
}

multiversion! {
    fn blend(left: &mut [i64], right: &[i64], rest: &[i64], fraction_bits: u32) {
        for ((left, right), rest) in left.iter_mut().zip(right).zip(rest) {
            *left = (*left << fraction_bits) + (*right - *left) * *rest;
        }
    }
}

multiversion! {
    /// First half of rule N-18.
    fn lookup_cells(block: &mut [i64], rest: &mut [i64], attributes: &Lookup) {
        let Lookup { input_shift, low, fraction_bits, index_bits, .. } = *attributes;
        let (end, last) = (1i64 << (index_bits + fraction_bits), (1i64 << index_bits) - 1);
        rescale(block, input_shift, LIMIT_63);
        for (x, rest) in block.iter_mut().zip(rest) {
            let u = (*x - low).clamp(0, end);
            *x = (u >> fraction_bits).min(last);
            *rest = u - (*x << fraction_bits);
        }
    }
}

multiversion! {
    /// How far elements lie under the maximum of their row.
    fn distances(row: &mut [i64], max: i64) {
        for x in row {
            *x = (max - *x).max(0);
        }
    }
}

multiversion! {
    /// First half of rule N-20, from distances to the row's maximum.
    fn exp_cells(block: &mut [i64], rest: &mut [i64], places: &mut [i64], multiplier: i64, input_shift: i32) {
        for x in block.iter_mut() {
            *x *= multiplier;
        }
        rescale(block, input_shift, LIMIT_63);
        for ((x, rest), places) in block.iter_mut().zip(rest).zip(places) {
            let u = (*x).min(EXP_MAX);
            (*x, *rest, *places) = (u >> 8 & 0xff, u & 0xff, (u >> 16) + 8);
        }
    }
}

multiversion! {
    /// Rounds each element by its own number of places, at least one, half to even (rule N-2).
    fn round_each(block: &mut [i64], places: &[i64], limit: i64) {
        for (x, places) in block.iter_mut().zip(places) {
            let odd = (*x >> *places) & 1;
            let below_half = (1i64 << (*places - 1)) - 1;
            *x = ((*x + below_half + odd) >> *places).clamp(-limit, limit);
        }
    }
}

/// A function of an integer, known for each from `low` on.
struct Values {
    low: i64,
    values: Vec<i32>,
}

impl Values {
    /// Computes them if that is less work than computing `uses` elements, and results fit.
    fn tabulate(
        (low, high): (i64, i64),
        (uses, limit): (usize, i64),
        mut function: impl FnMut(&mut [i64]),
    ) -> Option<Self> {
        let count = usize::try_from(high.checked_sub(low)?.checked_add(1)?).ok()?;
        if count > uses / 2 || i32::try_from(limit).is_err() {
            return None;
        }
        let mut values = Vec::with_capacity(count);
        let mut block: Vec<i64> = Vec::with_capacity(BLOCK);
        for start in (low..=high).step_by(BLOCK) {
            block.clear();
            block.extend((start..=high).take(BLOCK));
            function(&mut block);
            // The limit fits.
            values.extend(block.iter().map(|y| *y as i32));
        }
        Some(Self { low, values })
    }

    fn apply(&self, block: &mut [i64]) {
        for x in block {
            *x = i64::from(self.values[(*x - self.low) as usize]);
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
    let (table, mut cells) = (table.to_wide(), Cells::new());
    let mut function = |block: &mut [i64]| {
        lookup_cells(simd, block, &mut cells.rest, attributes);
        cells.interpolate(simd, &table, block, attributes.fraction_bits);
        rescale_block(simd, block, attributes.shift, limit);
    };
    let values = Values::tabulate((-x_limit, x_limit), (x.len(), limit), &mut function);
    for_blocks::<i64>(simd, out, |start, block| {
        x.load(simd, start, block);
        match &values {
            Some(values) => values.apply(block),
            None => function(block),
        }
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
    let (table, mut cells) = (table.to_wide(), Cells::new());
    let mut function = |block: &mut [i64]| {
        exp_cells(simd, block, &mut cells.rest, &mut cells.places, multiplier, to.shift);
        cells.interpolate(simd, &table, block, 8);
        round_each(simd, block, &cells.places, to.limit);
    };
    let values = Values::tabulate((0, distance), (a.len(), to.limit), &mut function);
    for_blocks::<i64>(simd, out, |start, block| {
        a.load(simd, start, block);
        for_rows(start, row, block, |m, _, part| {
            distances(simd, part, max.get(m));
        });
        match &values {
            Some(values) => values.apply(block),
            None => function(block),
        }
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
