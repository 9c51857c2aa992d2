//! Exact matrix products `a·bᵀ` by AVX2, for processors without VNNI.
//!
//! `vpmaddwd` multiplies sixteen words by as many and adds neighbours, so that each 32-bit lane gets two products.
//! Bytes are widened to words on the way. How many products a lane holds depends on the limits of the operands: all
//! 4096 of bytes, 516 of words by bytes, and two of words. Lanes are emptied into 64 bits before they can overflow.
//! Where that would be too often, `a = 256·a1 + a0` with `|a0|, |a1| ≤ 128` is multiplied slice by slice.
//!
//! Many rows of `a` are worth packing both operands into panels, and computing tiles that stay in registers; a few rows
//! read `b` once, in place.
//!
//! | module | what lives there |
//! |---|---|
//! | `pack` | words out of bytes and words, interleaved and sliced |
//! | `tile` | the inner loops |
//! | `product` | one product |

mod pack;
mod product;
mod tile;

use super::block::{Accumulator, Element};
use super::vnni::finish::Finish;
use super::vnni::lanes::LANES;
use super::vnni::matrix::{Batch, Memory};
use super::vnni::share::{Part, share};
use super::vnni::{Operand, UNSLICED_STRETCH, bytes_of};
use crate::slice::{Slice, SliceMut, each_width};
use product::Product;

/// Proof that this processor has what these kernels use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Avx2 {
    /// Threads to share large products between.
    threads: usize,
}

impl Avx2 {
    pub(crate) fn detect(threads: usize) -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self { threads })
    }

    /// Computes products of at most 4096 elements of two tensors of bytes, two of words, or words by bytes; false if
    /// they are neither.
    pub(crate) fn multiply(
        self,
        ((a, a_limit), (b, b_limit)): (Operand<'_>, Operand<'_>),
        batch: &Batch,
        finish: &impl Finish,
        out: SliceMut<'_>,
    ) -> bool {
        let (a, b) = match (a, b) {
            (Slice::I8(a), Slice::I8(b)) => ((bytes_of(a), 1), (bytes_of(b), 1)),
            (Slice::I16(a), Slice::I8(b)) => ((bytes_of(a), 2), (bytes_of(b), 1)),
            (Slice::I16(a), Slice::I16(b)) => ((bytes_of(a), 2), (bytes_of(b), 2)),
            _ => return false,
        };
        let k = batch.a.0.width;
        // Products that a lane holds; at least two, since 2·32767² < 2^31.
        let room = |limit: i64| (i64::from(i32::MAX) / (limit * b_limit)).min(i64::from(u16::MAX)) as usize;
        let whole = room(a_limit);
        let sliced = whole < k.min(UNSLICED_STRETCH);
        let narrow = !sliced && whole >= k && finish.narrow(batch.bound(a_limit, b_limit));
        let job = Job { a, b, stretch: if sliced { room(128) } else { whole }, batch, finish };
        each_width!(SliceMut, out, out => share(self.threads, batch, b.1, out, |part, out| {
            // SAFETY: `self` is the proof that AVX2 is there.
            unsafe {
                match (sliced, narrow) {
                    (true, _) => job.run::<2, 2, i64, _>(part, out),
                    (false, true) => job.run::<1, 4, i32, _>(part, out),
                    (false, false) => job.run::<1, 4, i64, _>(part, out),
                }
            }
        }));
        true
    }
}

/// A batch of products in memory.
struct Job<'a, F> {
    a: Memory<'a>,
    b: Memory<'a>,
    /// Products that a lane holds.
    stretch: usize,
    batch: &'a Batch,
    finish: &'a F,
}

impl<F: Finish> Job<'_, F> {
    /// Computes a part, `a` in `S` slices, `MR` rows a tile, sums in `A`; `out` begins at the part's first element.
    #[target_feature(enable = "avx2")]
    fn run<const S: usize, const MR: usize, A: Accumulator, T: Element>(&self, part: &Part, out: &mut [T]) {
        let bytes = (self.a.1, self.b.1);
        part.each(self.batch, (self.a, self.b), out, |a, b, (row, column), out| {
            let n = b.rows;
            // The inner loops are compiled once, whatever becomes of the sums.
            let mut take = |(m, first): (usize, usize), sums: &mut [A; LANES]| {
                let out = &mut out[m * self.batch.out.1 + first..][..LANES.min(n - first)];
                finish_here(self.finish, (row + m, column + first), sums, out);
            };
            Product { a, b, bytes, stretch: self.stretch }.run::<S, MR, A>(&mut take);
        });
    }
}

/// [`Finish::finish`], compiled for these processors.
#[target_feature(enable = "avx2")]
fn finish_here<F: Finish, A: Accumulator, T: Element>(
    finish: &F,
    place: (usize, usize),
    sums: &mut [A; LANES],
    out: &mut [T],
) {
    finish.finish(place, sums, out);
}
