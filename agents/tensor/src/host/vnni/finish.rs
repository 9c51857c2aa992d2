//! What becomes of the sums of a product while they are in the first-level cache.

use super::super::block::{Accumulator, Element, fits_i32, rescale};
use super::super::elementwise::Precision;

/// Most sums that are finished at a time.
pub(crate) const MOST: usize = 64;

/// Turns sums into mantissas of the result.
pub(crate) trait Finish: Sync {
    /// Whether sums of at most `bound` in magnitude may come in `i32`.
    fn narrow(&self, bound: u128) -> bool;

    /// Finishes the sums of columns `first..first + sums.len()` of a row; at most [`MOST`].
    fn finish<A: Accumulator, T: Element>(&self, place: (usize, usize), sums: &mut [A], out: &mut [T]);
}

/// `rescale(Σ)`: rules N-11, N-26 and N-27.
pub(crate) struct Rescaled(pub(crate) Precision);

impl Finish for Rescaled {
    fn narrow(&self, bound: u128) -> bool {
        fits_i32(bound, self.0.limit)
    }

    #[inline(always)]
    fn finish<A: Accumulator, T: Element>(&self, _: (usize, usize), sums: &mut [A], out: &mut [T]) {
        rescale(sums, self.0.shift, self.0.limit);
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = T::narrow(sum.wide());
        }
    }
}

/// `rescale(r[m]·c[n]·Σ)`: rule N-25.
pub(crate) struct Scaled<'a> {
    /// A scale for each row.
    pub(crate) r: &'a [i64],
    /// A scale for each column.
    pub(crate) c: &'a [i64],
    pub(crate) to: Precision,
}

impl Finish for Scaled<'_> {
    fn narrow(&self, bound: u128) -> bool {
        bound < 1 << 31
    }

    #[inline(always)]
    fn finish<A: Accumulator, T: Element>(&self, (row, first): (usize, usize), sums: &mut [A], out: &mut [T]) {
        let (r, c) = (self.r[row], &self.c[first..first + sums.len()]);
        let mut wide = [0i64; MOST];
        let wide = &mut wide[..sums.len()];
        for ((wide, sum), c) in wide.iter_mut().zip(sums).zip(c) {
            *wide = r * *c * sum.wide();
        }
        rescale(wide, self.to.shift, self.to.limit);
        for (out, x) in out.iter_mut().zip(wide) {
            *out = T::narrow(*x);
        }
    }
}
