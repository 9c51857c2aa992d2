//! How many elements reach a threshold, and what they weigh: TailSum and Threshold (rules N-34 and N-35).

use tensorlink_num::operators::{TailSum, Threshold};
use tensorlink_program::EngineError;

use super::block::{Element, Precision, rescale};
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut, each_width};

/// Elements counted in one byte for each lane.
const STRIDE: usize = 128;

/// The least that a type of this width can hold of what reaches `least`; none where it holds nothing that does.
#[inline(always)]
pub(super) fn least_of<T: Element>(least: i64) -> Option<T> {
    let end = i64::MAX >> (64 - 8 * size_of::<T>());
    (least <= end).then(|| T::narrow(least.max(-end)))
}

#[inline(always)]
fn count_of<T: Element>(part: &[T], least: T) -> i64 {
    let count = |chunk: &[T]| chunk.iter().fold(0u8, |count, x| count + u8::from(*x >= least));
    part.chunks(STRIDE).map(|chunk| i64::from(count(chunk))).sum()
}

multiversion! {
    /// Elements of each part of a row that reach the threshold.
    fn counts<T: Element>(row: &[T], run: usize, least: T, sums: &mut [i64]) {
        for (sum, part) in sums.iter_mut().zip(row.chunks_exact(run)) {
            *sum = count_of(part, least);
        }
    }
}

multiversion! {
    /// What those elements weigh.
    fn weights<T: Element, W: Element>(row: &[T], w: &[W], run: usize, least: T, sums: &mut [i64]) {
        for ((sum, part), w) in sums.iter_mut().zip(row.chunks_exact(run)).zip(w.chunks_exact(run)) {
            let weight = |(x, w): (&T, &W)| if *x >= least { w.wide() } else { 0 };
            *sum = part.iter().zip(w).map(weight).sum();
        }
    }
}

multiversion! {
    fn round(sums: &mut [i64], to: Precision) {
        rescale(sums, to.shift, to.limit);
    }
}

/// Attributes of rule N-34, and the lengths of a row and of its parts.
#[derive(Clone, Copy)]
pub(crate) struct Tail {
    pub(crate) row: usize,
    pub(crate) run: usize,
    pub(crate) bound: i64,
    pub(crate) weighted: bool,
}

/// Rule N-34.
pub(crate) fn tail_sum(
    simd: Simd,
    (a, w, t): (Slice<'_>, Slice<'_>, Slice<'_>),
    tail: &Tail,
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let parts = tail.row / tail.run;
    let mut sums = vec![0i64; parts];
    for m in 0..t.len() {
        let (least, row) = (t.get(m) + tail.bound, m * tail.row..(m + 1) * tail.row);
        each_width!(Slice, a, a => match least_of(least) {
            None => sums.fill(0),
            Some(least) if !tail.weighted => counts(simd, &a[row], tail.run, least, &mut sums),
            Some(least) => {
                each_width!(Slice, w, w => weights(simd, &a[row.clone()], &w[row], tail.run, least, &mut sums));
            }
        });
        round(simd, &mut sums, to);
        out.store(simd, m * parts, &sums);
    }
}

/// Rule N-35, of thresholds, counts, masses, totals and controls.
pub(crate) fn threshold(simd: Simd, operands: [Slice<'_>; 5], step: i64, limit: i64, out: &mut SliceMut<'_>) {
    let [t, counts, masses, totals, controls] = operands;
    let parts = counts.len() / t.len();
    let sum = |of: Slice<'_>, m: usize| each_width!(Slice, of, v => v[m * parts..(m + 1) * parts].iter().map(|x| x.wide()).sum::<i64>());
    for m in 0..t.len() {
        let (k, q) = (controls.get(7 * m + 3).max(1), controls.get(7 * m + 4).clamp(1, 1 << 16));
        let enough = sum(counts, m) >= k || sum(masses, m) << 16 >= q * sum(totals, m);
        let t = t.get(m);
        out.store(simd, m, &[if enough { (t + step).clamp(-limit, limit) } else { t }]);
    }
}

impl OnHost for TailSum {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let tail = Tail { row: on.row()?, run: self.depth as usize, bound: self.bound, weighted: self.weighted };
        let operands = (on.operand(0)?, on.operand(1)?, on.operand(2)?);
        tail_sum(on.simd, operands, &tail, on.to(self.shift), out);
        Ok(())
    }
}

impl OnHost for Threshold {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let [t, counts, masses] = [on.operand(0)?, on.operand(1)?, on.operand(2)?];
        let operands = [t, counts, masses, on.operand(3)?, on.operand(4)?];
        threshold(on.simd, operands, self.step, on.limit(), out);
        Ok(())
    }
}
