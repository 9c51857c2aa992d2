//! Rows reduced to an element each (rules N-19, N-21 and N-31).

use tensorlink_num::operators::{RowAbsMax, RowMax, RowSum};
use tensorlink_program::EngineError;

use super::block::{Element, Precision, for_blocks, rescale_block};
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut, each_width, same_width};

/// Rows of a tensor, and what of them is visible (rule N-8).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// Elements of a row.
    pub(crate) length: usize,
    /// Rows after which visibility begins anew; none where every element is visible.
    pub(crate) causal: Option<usize>,
}

impl Rows {
    /// Visible elements of row `m`, which come first in it; at least one.
    #[inline(always)]
    pub(crate) fn visible(self, m: usize) -> usize {
        self.causal.map_or(self.length, |tokens| self.length.min(m % tokens + 1))
    }
}

multiversion! {
    /// Rule N-19.
    pub(crate) fn row_max<T: Element>(a: &[T], rows: Rows, out: &mut [T]) {
        for (m, (out, a)) in out.iter_mut().zip(a.chunks_exact(rows.length)).enumerate() {
            *out = a[..rows.visible(m)].iter().fold(a[0], |max, x| max.max(*x));
        }
    }
}

/// The largest magnitude of some elements, at least one.
#[inline(always)]
pub(crate) fn magnitude<T: Element>(a: &[T]) -> i64 {
    let max = a.iter().fold(a[0], |max, x| max.max(*x));
    let min = a.iter().fold(a[0], |min, x| min.min(*x));
    // Mantissas are symmetric: the negative of one is one.
    max.wide().max(-min.wide())
}

multiversion! {
    /// Rule N-31; `row` elements a row.
    pub(crate) fn row_abs_max<T: Element>(a: &[T], row: usize, out: &mut [T]) {
        for (out, a) in out.iter_mut().zip(a.chunks_exact(row)) {
            *out = T::narrow(magnitude(a));
        }
    }
}

multiversion! {
    /// Sums of rows of so many elements.
    pub(crate) fn row_sums<T: Element>(a: &[T], row: usize, sums: &mut [i64]) {
        for (sum, a) in sums.iter_mut().zip(a.chunks_exact(row)) {
            *sum = a.iter().map(|x| x.wide()).sum();
        }
    }
}

/// Rule N-21; `row` elements a row.
pub(crate) fn row_sum(simd: Simd, a: Slice<'_>, row: usize, to: Precision, out: &mut SliceMut<'_>) {
    for_blocks::<i64>(simd, out, |start, block| {
        let range = start * row..(start + block.len()) * row;
        each_width!(Slice, a, v => row_sums(simd, &v[range], row, block));
        rescale_block(simd, block, to.shift, to.limit);
    });
}

impl OnHost for RowMax {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let rows = on.rows(self.depth as usize, self.visible.is_causal())?;
        same_width!(on.operand(0)?, out, (a, out) => row_max(on.simd, a, rows, out));
        Ok(())
    }
}

impl OnHost for RowAbsMax {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        same_width!(on.operand(0)?, out, (a, out) => row_abs_max(on.simd, a, self.depth as usize, out));
        Ok(())
    }
}

impl OnHost for RowSum {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        row_sum(on.simd, on.operand(0)?, self.depth as usize, on.to(self.shift), out);
        Ok(())
    }
}
