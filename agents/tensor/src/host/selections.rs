//! Parts of rows, and the row for a step (rules N-44 and N-47).

use tensorlink_num::operators::{self, AtStep};
use tensorlink_program::EngineError;

use super::block::Element;
use super::{Host, OnHost};
use crate::slice::{SliceMut, same_width};

/// Rule N-47 of rows of `row` elements, of which `width` are taken.
pub(crate) fn slice<T: Element>(a: &[T], (row, width): (usize, usize), offset: usize, out: &mut [T]) {
    for (out, a) in out.chunks_exact_mut(width).zip(a.chunks_exact(row)) {
        out.copy_from_slice(&a[offset..offset + width]);
    }
}

/// Rule N-44: the row for a step of a table of rows as long as the output.
pub(crate) fn at_step<T: Element>(table: &[T], step: u32, out: &mut [T]) {
    let last = (table.len() / out.len()).saturating_sub(1);
    let first = last.min(step as usize) * out.len();
    out.copy_from_slice(&table[first..first + out.len()]);
}

impl OnHost for operators::Slice {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let lengths = (self.row as usize, self.width as usize);
        same_width!(on.operand(0)?, out, (a, out) => slice(a, lengths, self.offset as usize, out));
        Ok(())
    }
}

impl OnHost for AtStep {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        same_width!(on.operand(0)?, out, (a, out) => at_step(a, on.context.step, out));
        Ok(())
    }
}
