//! Blocks: a few hundred elements, widened to the accumulator, computed on, rescaled and narrowed while they stay in
//! the first-level cache. One pass over memory for any operator, and no code for each pair of widths.

use std::fmt::Debug;
use std::ops::{Add, BitAnd, Mul, Neg, Range, Shl, Shr, Sub};

use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut, each_width};

/// Output precision of an operator: by how much to rescale, and the limit to clamp to.
#[derive(Clone, Copy)]
pub(crate) struct Precision {
    pub(crate) shift: i32,
    pub(crate) limit: i64,
}

/// Elements of a block; three of them in `i64` fill a quarter of a first-level cache.
pub(crate) const BLOCK: usize = 512;

/// Elements of a block, in whole lines of a cache: vectors that lie across two take twice as long.
#[repr(C, align(64))]
pub(crate) struct Block<A>(pub(crate) [A; BLOCK]);

/// A storage or accumulator width.
pub(crate) trait Element: Copy + Ord + Debug + Default + Send + Sync + 'static {
    /// Widens; exact.
    fn wide(self) -> i64;
    /// Narrows a value that is known to fit.
    fn narrow(value: i64) -> Self;
}

macro_rules! element {
    ($($t:ty),*) => {$(
        impl Element for $t {
            #[inline(always)]
            fn wide(self) -> i64 {
                #[allow(clippy::unnecessary_cast, reason = "one body for every width")]
                { self as i64 }
            }
            #[inline(always)]
            fn narrow(value: i64) -> Self {
                debug_assert!(Self::try_from(value).is_ok(), "{value} does not fit");
                #[allow(clippy::unnecessary_cast, reason = "one body for every width")]
                { value as Self }
            }
        }
    )*};
}
element!(i8, i16, i32, i64);

/// What operators accumulate in: `i32` where the bound allows, `i64` otherwise.
pub(crate) trait Accumulator:
    Element
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + BitAnd<Output = Self>
{
    const BITS: u32;
    const MAX: i64;
    const ZERO: Self;
    const ONE: Self;
}

impl Accumulator for i32 {
    const BITS: u32 = 32;
    const MAX: i64 = Self::MAX as i64;
    const ZERO: Self = 0;
    const ONE: Self = 1;
}

impl Accumulator for i64 {
    const BITS: u32 = 64;
    const MAX: Self = Self::MAX;
    const ZERO: Self = 0;
    const ONE: Self = 1;
}

/// Whether `bound` and a rescale of it can be held in `i32`: rounding adds up to 2^30.
pub(crate) const fn fits_i32(bound: u128, output_limit: i64) -> bool {
    bound < 1 << 30 && output_limit <= i32::MAX as i64
}

/// Rounds to `2^shift`, half to even, and clamps (rule N-2). Elements are below `2^(BITS − 2)` in magnitude, and the
/// limit fits the accumulator.
#[inline(always)]
pub(crate) fn rescale<A: Accumulator>(block: &mut [A], shift: i32, limit: i64) {
    let limit = A::narrow(limit.min(A::MAX));
    let by = shift.unsigned_abs();
    if shift > 0 && by >= A::BITS {
        // Every element is below a quarter of the unit.
        block.fill(A::ZERO);
    } else if shift > 0 {
        let below_half = (A::ONE << (by - 1)) - A::ONE;
        for x in block {
            let odd = (*x >> by) & A::ONE;
            *x = ((*x + below_half + odd) >> by).clamp(-limit, limit);
        }
    } else {
        let by = by.min(A::BITS - 1);
        let top = limit >> by;
        for x in block {
            *x = if *x > top {
                limit
            } else if *x < -top {
                -limit
            } else {
                *x << by
            };
        }
    }
}

multiversion! {
    /// Rescales a block in place.
    pub(crate) fn rescale_block<A: Accumulator>(block: &mut [A], shift: i32, limit: i64) {
        rescale(block, shift, limit);
    }
}

multiversion! {
    fn widen<T: Element, A: Accumulator>(from: &[T], to: &mut [A]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = A::narrow(from.wide());
        }
    }
}

multiversion! {
    fn narrow<A: Accumulator, T: Element>(from: &[A], to: &mut [T]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = T::narrow(from.wide());
        }
    }
}

impl Slice<'_> {
    /// The elements from one on.
    pub(crate) fn part(self, start: usize) -> Self {
        match self {
            Self::I8(v) => Self::I8(&v[start..]),
            Self::I16(v) => Self::I16(&v[start..]),
            Self::I32(v) => Self::I32(&v[start..]),
            Self::I64(v) => Self::I64(&v[start..]),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        each_width!(Slice, self, v => v.len())
    }

    /// One element, widened.
    pub(crate) fn get(&self, index: usize) -> i64 {
        each_width!(Slice, self, v => v[index].wide())
    }

    /// Widens the elements from `start` on into `block`.
    pub(crate) fn load<A: Accumulator>(&self, simd: Simd, start: usize, block: &mut [A]) {
        let range = start..start + block.len();
        each_width!(Slice, self, v => widen(simd, &v[range], block));
    }

    /// [`Self::load`] of a tensor repeated end to end.
    pub(crate) fn load_repeated<A: Accumulator>(&self, simd: Simd, start: usize, block: &mut [A]) {
        if self.len() == 1 {
            block.fill(A::narrow(self.get(0)));
            return;
        }
        let (mut from, mut done) = (start % self.len(), 0);
        while done < block.len() {
            let n = (block.len() - done).min(self.len() - from);
            self.load(simd, from, &mut block[done..done + n]);
            (from, done) = (0, done + n);
        }
    }

    /// [`Self::load`] of a tensor of which each element is taken `run` times.
    pub(crate) fn load_runs<A: Accumulator>(&self, simd: Simd, run: usize, start: usize, block: &mut [A]) {
        if run == 1 {
            self.load(simd, start, block);
        } else {
            each_width!(Slice, self, v => {
                for_rows(start, run, block, |m, _, part| part.fill(A::narrow(v[m].wide())));
            });
        }
    }

    /// All elements, widened.
    pub(crate) fn to_wide(self) -> Vec<i64> {
        each_width!(Slice, self, v => v.iter().map(|x| x.wide()).collect())
    }
}

impl SliceMut<'_> {
    pub(crate) const fn len(&self) -> usize {
        each_width!(SliceMut, self, v => v.len())
    }

    /// The elements from one on.
    pub(crate) fn part(&mut self, start: usize) -> SliceMut<'_> {
        self.within(start..self.len())
    }

    /// Some of the elements.
    pub(crate) fn within(&mut self, range: Range<usize>) -> SliceMut<'_> {
        each_width!(SliceMut, self, v => SliceMut::from(&mut v[range]))
    }

    pub(crate) fn zero(&mut self) {
        each_width!(SliceMut, self, v => v.fill(Default::default()));
    }

    /// Widens the elements from `start` on into `block`.
    pub(crate) fn load<A: Accumulator>(&self, simd: Simd, start: usize, block: &mut [A]) {
        let range = start..start + block.len();
        each_width!(SliceMut, self, v => widen(simd, &v[range], block));
    }

    /// Narrows a block into the elements from `start` on; its values fit.
    pub(crate) fn store<A: Accumulator>(&mut self, simd: Simd, start: usize, block: &[A]) {
        let range = start..start + block.len();
        each_width!(SliceMut, self, v => narrow(simd, block, &mut v[range]));
    }
}

/// Computes an output block by block: `compute(start, block)` fills the elements from `start` on.
pub(crate) fn for_blocks<A: Accumulator>(simd: Simd, out: &mut SliceMut<'_>, mut compute: impl FnMut(usize, &mut [A])) {
    let Block(buffer) = &mut Block([A::ZERO; BLOCK]);
    for start in (0..out.len()).step_by(BLOCK) {
        let block = &mut buffer[..BLOCK.min(out.len() - start)];
        compute(start, block);
        out.store(simd, start, block);
    }
}

/// Splits the block that begins at element `start` where rows end: `f(row number, first column, elements)`.
pub(crate) fn for_rows<A>(start: usize, row: usize, mut block: &mut [A], mut f: impl FnMut(usize, usize, &mut [A])) {
    let (mut m, mut column) = (start / row, start % row);
    while !block.is_empty() {
        let (part, rest) = block.split_at_mut((row - column).min(block.len()));
        f(m, column, part);
        (m, column, block) = (m + 1, 0, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule N-2 over i128, written as the specification reads.
    fn specified(x: i64, shift: i32, limit: i64) -> i64 {
        let x = i128::from(x);
        let limit = i128::from(limit);
        let rounded = if shift <= 0 {
            x << shift.unsigned_abs()
        } else {
            let unit = 1i128 << shift;
            let (q, r) = (x.div_euclid(unit), x.rem_euclid(unit));
            q + i128::from(2 * r > unit || (2 * r == unit && q.rem_euclid(2) == 1))
        };
        rounded.clamp(-limit, limit) as i64
    }

    #[test]
    fn rescales_as_specified_at_every_shift_and_edge() {
        let edges: Vec<i64> = (0..63).flat_map(|b| [-1, 0, 1].map(|d| (1i64 << b) + d)).flat_map(|x| [x, -x]).collect();
        for shift in -63..=63 {
            for bits in [2u32, 8, 16, 24, 32, 33, 63, 64] {
                let limit = ((1u64 << (bits - 1)) - 1) as i64;
                for &x in &edges {
                    let due = specified(x, shift, limit);
                    if x.unsigned_abs() < 1 << 62 {
                        let mut block = [x];
                        rescale(&mut block, shift, limit);
                        assert_eq!(block[0], due, "{x} {shift} {bits}");
                    }
                    if fits_i32(u128::from(x.unsigned_abs()), limit) {
                        let mut block = [x as i32];
                        rescale(&mut block, shift, limit);
                        assert_eq!(i64::from(block[0]), due, "{x} {shift} {bits} in i32");
                    }
                }
            }
        }
    }
}
