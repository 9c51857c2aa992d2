//! GroupSum: heads that share a group, added (rule N-45).

use tensorlink_num::operators::GroupSum;
use tensorlink_program::EngineError;

use super::block::{Element, Precision, rescale};
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut, each_width};

multiversion! {
    /// Sums of as many runs of `width` as `a` has for each of `sums`.
    fn add_heads<T: Element>(a: &[T], width: usize, sums: &mut [i64]) {
        let share = a.len() / sums.len();
        for (sums, a) in sums.chunks_exact_mut(width).zip(a.chunks_exact(share * width)) {
            sums.fill(0);
            for head in a.chunks_exact(width) {
                for (sum, x) in sums.iter_mut().zip(head) {
                    *sum += x.wide();
                }
            }
        }
    }
}

multiversion! {
    fn round(sums: &mut [i64], to: Precision) {
        rescale(sums, to.shift, to.limit);
    }
}

/// Rule N-45: heads of `width`, rows of the output of `row` elements.
pub(crate) fn group_sum(simd: Simd, a: Slice<'_>, (width, row): (usize, usize), to: Precision, out: &mut SliceMut<'_>) {
    let share = a.len() / out.len();
    let mut sums = vec![0i64; row];
    for start in (0..out.len()).step_by(row) {
        let range = start * share..(start + row) * share;
        each_width!(Slice, a, a => add_heads(simd, &a[range], width, &mut sums));
        round(simd, &mut sums, to);
        out.store(simd, start, &sums);
    }
}

impl OnHost for GroupSum {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let lengths = (self.width as usize, (self.groups * self.width) as usize);
        group_sum(on.simd, on.operand(0)?, lengths, on.to(self.shift), out);
        Ok(())
    }
}
