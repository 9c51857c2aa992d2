//! Softmax within attention: scores of a row become its probabilities while they are in the first-level cache.

use super::block::{Precision, rescale_block};
use super::cells::Cells;
use super::exp::Powers;
use super::reductions::{Rows, row_max, row_sums};
use super::softmax::normalize;
use crate::simd::Simd;
use crate::slice::{Slice, SliceMut};

/// Rules N-19 to N-22 in a row, of words.
pub(crate) struct Softmax {
    pub(crate) simd: Simd,
    pub(crate) powers: Powers,
    /// Of sums.
    pub(crate) sum: Precision,
    /// Bits by which quotients are finer than sums.
    pub(crate) bits: u32,
    /// Limit of a probability.
    pub(crate) limit: i64,
}

/// What a thread needs to compute rows.
pub(crate) struct Scratch {
    powers: Vec<i32>,
    cells: Cells<i64>,
}

impl Scratch {
    /// For rows of at most so many elements.
    pub(crate) fn new(length: usize) -> Self {
        Self { powers: vec![0; length], cells: Cells::new() }
    }
}

impl Softmax {
    /// Turns the scores of a row into probabilities: of the first `visible`, and zeros.
    pub(crate) fn row(&self, row: &mut [i16], visible: usize, scratch: &mut Scratch) {
        let (simd, (seen, hidden)) = (self.simd, row.split_at_mut(visible));
        hidden.fill(0);
        let powers = &mut scratch.powers[..visible];
        let mut max = [0];
        row_max(simd, seen, Rows { length: visible, causal: None }, &mut max);
        self.powers.row(seen, max[0].into(), &mut scratch.cells, powers);
        let mut sum = [0];
        row_sums(simd, powers, visible, &mut sum);
        rescale_block(simd, &mut sum, self.sum.shift, self.sum.limit);
        let powers = (Slice::I32(powers), self.powers.limit());
        normalize(simd, powers, (&mut sum, visible), self.bits, self.limit, &mut SliceMut::I16(seen));
    }
}
