//! Gather: rows of a table, by their numbers, each with its scale (rule N-30).

use tensorlink_num::operators::Gather;
use tensorlink_program::EngineError;

use super::block::{Accumulator, BLOCK, Precision, fits_i32};
use super::elementwise::scale_block;
use super::{Host, OnHost};
use crate::simd::Simd;
use crate::slice::{Slice, SliceMut};

/// Rule N-30, accumulating in `A`; a scale for each row of the table, at least.
pub(crate) fn gather<A: Accumulator>(
    simd: Simd,
    (table, scale): (Slice<'_>, Slice<'_>),
    (ids, row): (Slice<'_>, usize),
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let last = (table.len() / row).saturating_sub(1) as i64;
    let mut buffer = [A::ZERO; BLOCK];
    for token in 0..out.len() / row {
        let entry = ids.get(token).clamp(0, last) as usize;
        let factor = A::narrow(scale.get(entry));
        for first in (0..row).step_by(BLOCK) {
            let block = &mut buffer[..BLOCK.min(row - first)];
            table.load(simd, entry * row + first, block);
            scale_block(simd, block, factor, to);
            out.store(simd, token * row + first, block);
        }
    }
}

impl OnHost for Gather {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let (table, ids) = ((on.operand(0)?, on.operand(1)?), (on.operand(2)?, self.width as usize));
        if fits_i32(on.reach(0)? * on.reach(1)?, on.limit()) {
            gather::<i32>(on.simd, table, ids, on.to(self.shift), out);
        } else {
            gather::<i64>(on.simd, table, ids, on.to(self.shift), out);
        }
        Ok(())
    }
}
