//! GatherGrad: sums of the gradients of a gathered row (rule N-41); GroupSum: heads that share a group, added (N-45).

use tensorlink_num::operators::{GatherGrad, GroupSum};
use tensorlink_program::EngineError;

use super::block::{Element, Precision, rescale};
use super::linear::transpose;
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut, each_width};

multiversion! {
    fn add<T: Element>(row: &[T], sums: &mut [i64]) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x.wide();
        }
    }
}

multiversion! {
    /// Rounds the sums, and adds them to what is there.
    fn round(sums: &mut [i64], to: Precision, there: &[i64]) {
        rescale(sums, to.shift, to.limit);
        for (sum, there) in sums.iter_mut().zip(there) {
            *sum = sum.saturating_add(*there).clamp(-to.limit, to.limit);
        }
    }
}

/// Rows of the output `width` long; `g` has as many rows. Most rows of the output belong to no token.
pub(crate) fn gather_grad(
    simd: Simd,
    g: Slice<'_>,
    ids: Slice<'_>,
    width: usize,
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    out.zero();
    add_gather_grad(simd, g, ids, width, to, out);
}

/// The same, added to what the output holds.
pub(crate) fn add_gather_grad(
    simd: Simd,
    g: Slice<'_>,
    ids: Slice<'_>,
    width: usize,
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let (tokens, last) = (g.len() / width, (out.len() / width).saturating_sub(1) as i64);
    let mut entries: Vec<(usize, usize)> = (0..tokens).map(|t| (ids.get(t).clamp(0, last) as usize, t)).collect();
    entries.sort_unstable();
    each_width!(Slice, g, g => {
        // A row for each token.
        let mut rows = vec![Default::default(); g.len()];
        transpose(simd, g, (width, tokens), &mut rows);
        let (mut sums, mut there) = (vec![0i64; width], vec![0i64; width]);
        for of_entry in entries.chunk_by(|a, b| a.0 == b.0) {
            sums.fill(0);
            for (_, token) in of_entry {
                add(simd, &rows[token * width..(token + 1) * width], &mut sums);
            }
            let first = of_entry[0].0 * width;
            out.load(simd, first, &mut there);
            round(simd, &mut sums, to, &there);
            out.store(simd, first, &sums);
        }
    });
}

impl OnHost for GatherGrad {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        gather_grad(on.simd, on.operand(0)?, on.operand(1)?, self.width as usize, on.to(self.shift), out);
        Ok(())
    }
}

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
    fn round_groups(sums: &mut [i64], to: Precision) {
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
        round_groups(simd, &mut sums, to);
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
