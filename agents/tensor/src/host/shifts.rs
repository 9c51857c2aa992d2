//! RowShift and ShiftRows: rows of wide activations, brought to the bits that a product takes (rules N-49 and N-50).

use tensorlink_num::bounds::MAX_ROW_SHIFT;
use tensorlink_num::operators::{RowShift, ShiftRows, ShiftedMatMul};
use tensorlink_program::EngineError;

use super::block::{Accumulator, BLOCK, Element, rescale_block};
use super::reductions::magnitude;
use super::wide::shift_row;
use super::{Host, OnHost, fits_i32};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut, each_width};

multiversion! {
    fn largest_of<T: Element>(a: &[T], largest: &mut i64) {
        *largest = magnitude(a);
    }
}

/// Rule N-49, of every `run` elements.
pub(crate) fn row_shifts(simd: Simd, a: Slice<'_>, (run, bits): (usize, u32), out: &mut SliceMut<'_>) {
    each_width!(Slice, a, a => for (m, row) in a.chunks_exact(run).enumerate() {
        let mut largest = 0;
        largest_of(simd, row, &mut largest);
        let length = i64::BITS - largest.leading_zeros();
        out.store(simd, m, &[i64::from(length.saturating_sub(bits - 1))]);
    });
}

/// A row's shift as N-50 and N-51 take it.
pub(crate) fn of_row(shifts: Slice<'_>, m: usize) -> i32 {
    // Between 0 and 31.
    shifts.get(m).clamp(0, MAX_ROW_SHIFT) as i32
}

/// Rule N-50, accumulating in `A`; rows of so many elements.
pub(crate) fn shift_rows<A: Accumulator>(
    simd: Simd,
    (a, row): (Slice<'_>, usize),
    shifts: Slice<'_>,
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    if let (true, Slice::I32(a)) = (A::BITS == i32::BITS, a) {
        each_width!(SliceMut, out, out => {
            for (m, (a, out)) in a.chunks_exact(row).zip(out.chunks_exact_mut(row)).enumerate() {
                shift_row(simd, a, of_row(shifts, m), limit, out);
            }
        });
        return;
    }
    let mut buffer = [A::ZERO; BLOCK];
    for m in 0..a.len() / row {
        let shift = of_row(shifts, m);
        for first in (0..row).step_by(BLOCK) {
            let block = &mut buffer[..BLOCK.min(row - first)];
            a.load(simd, m * row + first, block);
            rescale_block(simd, block, shift, limit);
            out.store(simd, m * row + first, block);
        }
    }
}

impl OnHost for RowShift {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        row_shifts(on.simd, on.operand(0)?, (self.depth as usize, self.bits), out);
        Ok(())
    }
}

impl OnHost for ShiftRows {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let (a, shifts) = ((on.operand(0)?, self.depth as usize), on.operand(1)?);
        if fits_i32(on.reach(0)?, on.limit()) {
            shift_rows::<i32>(on.simd, a, shifts, on.limit(), out);
        } else {
            shift_rows::<i64>(on.simd, a, shifts, on.limit(), out);
        }
        Ok(())
    }
}

// A product, by a kernel of its own.
impl OnHost for ShiftedMatMul {}
