//! Piecewise-linear functions given by tables.
//!
//! A block is computed in passes that vectorise (cell and rest, blend, rescale) around the one that does not (fetching
//! table entries). Where a tensor has more elements than its type has values, the function is computed once for each value.

use super::block::{BLOCK, Element, for_blocks, rescale, rescale_block};
use super::values::Values;
use crate::instruction::Lookup;
use crate::simd::{Simd, multiversion};
use crate::tensor::{Slice, SliceMut, each_width};

/// Largest exponent of ExpNeg, in 16 fraction bits: beyond it the result is 0.
pub(crate) const EXP_MAX: i64 = 40 << 16;

/// Limit of the 63-bit intermediate of Lookup and ExpNeg.
pub(crate) const LIMIT_63: i64 = (1 << 62) - 1;

/// Where the elements of a block lie in their table.
pub(crate) struct Cells {
    /// How far past its entry an element lies; the entry's number is left in the element's place.
    pub(crate) rest: [i64; BLOCK],
    /// Places to round away at the end, for each element (ExpNeg).
    pub(crate) places: [i64; BLOCK],
    /// The entry after an element's own.
    next: [i64; BLOCK],
}

impl Cells {
    pub(crate) const fn new() -> Self {
        Self { rest: [0; BLOCK], places: [0; BLOCK], next: [0; BLOCK] }
    }

    /// Replaces entry numbers by `table[j]·(2^f − r) + table[j+1]·r`.
    pub(crate) fn interpolate(&mut self, simd: Simd, table: &[i64], block: &mut [i64], fraction_bits: u32) {
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
    /// Indices of elements of at most 16 bits, the lowest being `low`.
    fn indices<X: Element>(x: &[X], low: i32, last: i32, indices: &mut [i32]) {
        for (index, x) in indices.iter_mut().zip(x) {
            *index = (x.wide() as i32 - low).clamp(0, last);
        }
    }
}

fn from_values<X: Element, Y: Element>(simd: Simd, x: &[X], values: &Values, out: &mut [Y]) {
    let mut buffer = [0i32; BLOCK];
    for (out, x) in out.chunks_mut(BLOCK).zip(x.chunks(BLOCK)) {
        let block = &mut buffer[..out.len()];
        indices(simd, x, values.low as i32, values.last(), block);
        values.fetch(block, out);
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
    let small = matches!(x, Slice::I8(_) | Slice::I16(_));
    let values = Values::tabulate((-x_limit, x_limit), (x.len(), limit), &mut function).filter(|_| small);
    if let Some(values) = values {
        return each_width!(Slice, x, x => each_width!(SliceMut, out, out => from_values(simd, x, &values, out)));
    }
    for_blocks::<i64>(simd, out, |start, block| {
        x.load(simd, start, block);
        function(block);
    });
}
