//! What becomes of the sums of a product while they are in the first-level cache.

use super::super::block::{Accumulator, Element, fits_i32, rescale};
use super::super::elementwise::Precision;
use super::pack::LANES;
use crate::tensor::Slice;

/// Turns sums into mantissas of the result.
pub(crate) trait Finish: Sync {
    /// Whether sums of at most `bound` in magnitude may come in `i32`.
    fn narrow(&self, bound: u128) -> bool;

    /// Finishes the sums of a row from a column on, which is a multiple of [`LANES`]; as many as `out` has elements.
    fn finish<A: Accumulator, T: Element>(&self, place: (usize, usize), sums: &mut [A; LANES], out: &mut [T]);
}

#[inline(always)]
fn write<A: Accumulator, T: Element>(from: &[A; LANES], to: &mut [T]) {
    if let Ok(whole) = <&mut [T; LANES]>::try_from(&mut *to) {
        *whole = from.map(|x| T::narrow(x.wide()));
        return;
    }
    for (to, from) in to.iter_mut().zip(from) {
        *to = T::narrow(from.wide());
    }
}

/// `rescale(Σ)`: rules N-11, N-26 and N-27.
pub(crate) struct Rescaled(pub(crate) Precision);

impl Finish for Rescaled {
    fn narrow(&self, bound: u128) -> bool {
        fits_i32(bound, self.0.limit)
    }

    #[inline(always)]
    fn finish<A: Accumulator, T: Element>(&self, _: (usize, usize), sums: &mut [A; LANES], out: &mut [T]) {
        rescale(sums, self.0.shift, self.0.limit);
        write(sums, out);
    }
}

/// `rescale(r[m]·c[n]·Σ)`: rule N-25.
pub(crate) struct Scaled {
    /// A scale for each row.
    r: Vec<i64>,
    /// A scale for each column, whole panels of them.
    c: Vec<[i64; LANES]>,
    to: Precision,
}

impl Scaled {
    pub(crate) fn new(r: Slice<'_>, c: Slice<'_>, to: Precision) -> Self {
        let c = c.to_wide();
        let panel = |part: &[i64]| std::array::from_fn(|i| part.get(i).copied().unwrap_or_default());
        Self { r: r.to_wide(), c: c.chunks(LANES).map(panel).collect(), to }
    }
}

impl Finish for Scaled {
    fn narrow(&self, bound: u128) -> bool {
        bound < 1 << 31
    }

    #[inline(always)]
    fn finish<A: Accumulator, T: Element>(&self, (row, first): (usize, usize), sums: &mut [A; LANES], out: &mut [T]) {
        let (r, c) = (self.r[row], &self.c[first / LANES]);
        let mut scaled: [i64; LANES] = std::array::from_fn(|i| r * c[i] * sums[i].wide());
        rescale(&mut scaled, self.to.shift, self.to.limit);
        write(&scaled, out);
    }
}
