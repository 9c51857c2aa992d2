//! Lookup: piecewise-linear functions given by tables; and ExpNeg, whose kernels are in `exp`.
//!
//! A block is computed in passes that vectorise (cell and rest, blend, rescale) around the one that does not
//! (fetching table entries). Where a tensor has more elements than its type has values, the function is computed once
//! for each value.

use tensorlink_num::operators::{self, Lookup};
use tensorlink_program::EngineError;

use super::block::{Accumulator, BLOCK, Element, fits_i32, for_blocks, rescale, rescale_block};
use super::cells::{Cells, LIMIT_63};
use super::exp::{ExpNeg, exp_neg};
use super::fused;
use super::values::Values;
use super::wide;
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut, each_width};

multiversion! {
    /// The same of pairs: the left entry in the low half of a word, the right in the high.
    fn blend_pairs(pairs: &mut [i32], rest: &[i32], attributes: &Lookup) {
        for (pair, rest) in pairs.iter_mut().zip(rest) {
            let (left, right) = ((*pair << 16) >> 16, *pair >> 16);
            *pair = (left << attributes.fraction_bits) + (right - left) * *rest;
        }
    }
}

multiversion! {
    /// First half of rule N-18.
    fn lookup_cells<A: Accumulator>(block: &mut [A], rest: &mut [A], attributes: &Lookup) {
        let Lookup { input_shift, low, fraction_bits, log, .. } = *attributes;
        let (end, last) = (A::ONE << (log + fraction_bits), (A::ONE << log) - A::ONE);
        rescale(block, input_shift as i32, LIMIT_63);
        let low = A::narrow(low);
        for (x, rest) in block.iter_mut().zip(rest) {
            let u = (*x - low).clamp(A::ZERO, end);
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

/// Whether a Lookup may be computed in `i32`: argument, offset, blend and result all fit.
fn narrow(attributes: &Lookup, x_limit: i64, table_limit: i64, limit: i64) -> bool {
    let shifted = |x: i64, places: u32| u128::from(x.unsigned_abs()) << places;
    let argument = shifted(x_limit, attributes.input_shift.min(0).unsigned_abs() as u32);
    let bound = argument.max(shifted(table_limit, attributes.fraction_bits)).max(shifted(attributes.low, 0));
    fits_i32(bound, limit)
}

/// Rule N-18; the limits bound the elements of `x` and of the table.
pub(crate) fn lookup(
    simd: Simd,
    (x, x_limit): (Slice<'_>, i64),
    (table, table_limit): (Slice<'_>, i64),
    attributes: &Lookup,
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    if narrow(attributes, x_limit, table_limit, limit) {
        let mut entries = vec![0i32; table.len()];
        table.load(simd, 0, &mut entries);
        if table_limit <= i16::MAX.into() {
            return lookup_pairs(simd, x, &entries, attributes, limit, out);
        }
        return lookup_blocks(simd, x, &entries, attributes, limit, out);
    }
    if let (true, Slice::I32(x), Slice::I32(table), SliceMut::I32(out)) =
        (wide::looks_up(attributes, x_limit, table_limit), x, table, &mut *out)
    {
        return wide::lookup(simd, x, table, attributes, limit, out);
    }
    let (table, mut cells) = (table.to_wide(), Cells::new());
    let small = matches!(x, Slice::I8(_) | Slice::I16(_)).then_some(());
    let values = small.and_then(|()| {
        Values::tabulate((-x_limit, x_limit), (x.len(), limit), |block| {
            lookup_block(simd, block, &mut cells, &table, attributes, limit);
        })
    });
    if let Some(values) = values {
        return each_width!(Slice, x, x => each_width!(SliceMut, out, out => from_values(simd, x, &values, out)));
    }
    lookup_blocks(simd, x, &table, attributes, limit, out);
}

/// Lookup in a table of words: an entry and the one after it are fetched at once.
fn lookup_pairs(simd: Simd, x: Slice<'_>, entries: &[i32], attributes: &Lookup, limit: i64, out: &mut SliceMut<'_>) {
    let pairs: Vec<i32> = entries.iter().zip(&entries[1..]).map(|(left, right)| left & 0xffff | right << 16).collect();
    let plain = attributes.input_shift == 0 && fused::serves(attributes.shift as i32);
    if let (true, Slice::I16(x), SliceMut::I16(out)) = (plain, x, &mut *out) {
        return fused::lookup(simd, x, &pairs, attributes, limit, out);
    }
    let mut rest = [0i32; BLOCK];
    for_blocks::<i32>(simd, out, |start, block| {
        x.load(simd, start, block);
        lookup_cells(simd, block, &mut rest, attributes);
        for x in block.iter_mut() {
            *x = pairs[*x as usize];
        }
        blend_pairs(simd, block, &rest, attributes);
        rescale_block(simd, block, attributes.shift as i32, limit);
    });
}

fn lookup_blocks<A: Accumulator>(
    simd: Simd,
    x: Slice<'_>,
    table: &[A],
    attributes: &Lookup,
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    let mut cells = Cells::new();
    for_blocks::<A>(simd, out, |start, block| {
        x.load(simd, start, block);
        lookup_block(simd, block, &mut cells, table, attributes, limit);
    });
}

fn lookup_block<A: Accumulator>(
    simd: Simd,
    block: &mut [A],
    cells: &mut Cells<A>,
    table: &[A],
    attributes: &Lookup,
    limit: i64,
) {
    lookup_cells(simd, block, &mut cells.rest, attributes);
    cells.interpolate(simd, table, block, attributes.fraction_bits);
    rescale_block(simd, block, attributes.shift as i32, limit);
}

impl OnHost for Lookup {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let (x, table) = ((on.operand(0)?, on.ty(0)?.limit()), (on.operand(1)?, on.ty(1)?.limit()));
        lookup(on.simd, x, table, self, on.limit(), out);
        Ok(())
    }
}

impl OnHost for operators::ExpNeg {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let distance = i64::try_from(on.reach(0)? + on.reach(1)?).unwrap_or(i64::MAX);
        let input_shift = self.input_shift as i32;
        let attributes = ExpNeg { multiplier: self.multiplier, input_shift, distance, limit: on.limit() };
        let SliceMut::I32(out) = out else {
            return Err(EngineError::Malformed("ExpNeg gives 26 bits".to_owned()));
        };
        let operands = (on.operand(0)?, on.operand(1)?, on.operand(2)?);
        exp_neg(on.simd, operands, attributes, on.rows(self.depth as usize, self.visible.is_causal())?, out);
        Ok(())
    }
}
