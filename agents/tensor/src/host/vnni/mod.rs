//! Exact matrix products `a·bᵀ` by AVX-512 VNNI.
//!
//! *Bytes.* `vpdpbusd` adds four products of an unsigned and a signed byte to each 32-bit lane, without saturating. `b`
//! is made unsigned by flipping its top bit, which adds 128: `Σa·b = Σa·(b + 128) − 128·Σa`.
//!
//! *Words.* `vpdpwssd` adds two products of 16-bit words to a lane, which only a few products of the full range fit. So
//! `a = 256·a1 + a0` with `|a0|, |a1| ≤ 128` is multiplied slice by slice, and lanes are emptied into 64 bits before
//! they can overflow. Operands whose limits leave room in the lane are not sliced.
//!
//! *Words by bytes.* A word is multiplied by its halves: two products of bytes.
//!
//! Many rows of `a` are worth packing both operands into panels and computing tiles that stay in registers; a few rows
//! read `b` once, in place. Panels of `b` are packed anew by every product: from 64 rows of `a` on that is a few
//! hundredths of the work, and a packed copy would double the memory of the weights.
//!
//! | module | what lives there |
//! |---|---|
//! | [`matrix`] | where operands lie: heads and parts of rows are read in place |
//! | [`finish`] | scales and rescales sums while they are in cache |
//! | `lanes` | vectors of sixteen words |
//! | `pack` | interleaves rows |
//! | `tile` | the inner loops |
//! | `product` | one product of bytes, or of words |
//! | `halves` | one of words by bytes |
//! | [`share`](mod@share) | parts for several threads |

pub(crate) mod finish;
mod halves;
pub(super) mod lanes;
pub(crate) mod matrix;
pub(super) mod pack;
mod product;
pub(super) mod share;
mod tile;

use super::block::{Accumulator, Element};
use crate::slice::{Slice, SliceMut, each_width};
use finish::Finish;
use halves::Halves;
use matrix::Batch;
use product::Product;
use share::{Part, share};
use tile::{Bytes, Dot, Words};

/// Shortest stretch of the dot product between two emptyings of the lanes for which slicing `a` is no gain.
pub(super) const UNSLICED_STRETCH: usize = 128;

/// Proof that this processor has what these kernels use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Vnni {
    /// Threads to share large products between.
    threads: usize,
}

/// Mantissas and the limit of their magnitude.
pub(crate) type Operand<'a> = (Slice<'a>, i64);

impl Vnni {
    pub(crate) fn detect(threads: usize) -> Option<Self> {
        let there = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni");
        there.then_some(Self { threads })
    }

    /// Computes products of at most 4096 elements of two tensors of bytes, two of words, or words by bytes; false if
    /// they are neither.
    pub(crate) fn multiply(
        self,
        (a, b): (Operand<'_>, Operand<'_>),
        batch: &Batch,
        finish: &impl Finish,
        out: SliceMut<'_>,
    ) -> bool {
        match (a, b) {
            ((Slice::I8(a), _), (Slice::I8(b), _)) => self.bytes((a, b), batch, finish, out),
            ((Slice::I16(a), a_limit), (Slice::I16(b), b_limit)) => {
                self.words((a, a_limit), (b, b_limit), batch, finish, out);
            }
            ((Slice::I16(a), a_limit), (Slice::I8(b), b_limit)) => {
                self.words_by_bytes((a, a_limit), (b, b_limit), batch, finish, out);
            }
            _ => return false,
        }
        true
    }

    fn words_by_bytes(
        self,
        (a, a_limit): (&[i16], i64),
        (b, b_limit): (&[i8], i64),
        batch: &Batch,
        finish: &impl Finish,
        out: SliceMut<'_>,
    ) {
        let job = Job { a: bytes_of(a), b: bytes_of(b), stretch: usize::MAX, batch, finish };
        let narrow = finish.narrow(batch.bound(a_limit, b_limit));
        each_width!(SliceMut, out, out => {
            // SAFETY: `self` is the proof that the features are there.
            share(self.threads, batch, size_of::<i16>(), out, |part, out| unsafe { job.run_halves(narrow, part, out) });
        });
    }

    fn bytes(self, (a, b): (&[i8], &[i8]), batch: &Batch, finish: &impl Finish, out: SliceMut<'_>) {
        let job = Job { a: bytes_of(a), b: bytes_of(b), stretch: usize::MAX, batch, finish };
        // 4096 products of 2^14, before the bias is taken off and after, stay below 2^27.
        if finish.narrow(1 << 27) {
            self.compute::<Bytes, 1, 8, i32>(&job, out);
        } else {
            self.compute::<Bytes, 1, 8, i64>(&job, out);
        }
    }

    fn words(
        self,
        (a, a_limit): (&[i16], i64),
        (b, b_limit): (&[i16], i64),
        batch: &Batch,
        finish: &impl Finish,
        out: SliceMut<'_>,
    ) {
        let k = batch.a.0.width;
        // Products that a lane holds; at least two, since 2·32767² < 2^31.
        let room = |limit: i64| ((1i64 << 31) - 1) / (limit * b_limit);
        let unsliced = room(a_limit).min(i64::from(u16::MAX)) as usize;
        let b = bytes_of(b);
        if unsliced >= k.min(UNSLICED_STRETCH) {
            let job = Job { a: bytes_of(a), b, stretch: unsliced, batch, finish };
            if unsliced >= k && finish.narrow(batch.bound(a_limit, b_limit)) {
                self.compute::<Words, 1, 8, i32>(&job, out);
            } else {
                self.compute::<Words, 1, 8, i64>(&job, out);
            }
        } else {
            let job = Job { a: bytes_of(a), b, stretch: room(128) as usize, batch, finish };
            self.compute::<Words, 2, 4, i64>(&job, out);
        }
    }

    fn compute<D: Dot, const S: usize, const MR: usize, A: Accumulator>(
        self,
        job: &Job<'_, impl Finish>,
        out: SliceMut<'_>,
    ) {
        each_width!(SliceMut, out, out => self.share::<D, S, MR, A, _>(job, out));
    }

    fn share<D: Dot, const S: usize, const MR: usize, A: Accumulator, T: Element>(
        self,
        job: &Job<'_, impl Finish>,
        out: &mut [T],
    ) {
        // SAFETY: `self` is the proof that the features are there.
        let run = |part: &Part, out: &mut [T]| unsafe { job.run::<D, S, MR, A, _>(part, out) };
        share(self.threads, job.batch, D::BYTES, out, run);
    }
}

/// Memory of mantissas as bytes.
pub(super) fn bytes_of<T: Element>(mantissas: &[T]) -> &[u8] {
    // SAFETY: integers have no padding, and a byte needs no alignment.
    unsafe { std::slice::from_raw_parts(mantissas.as_ptr().cast(), size_of_val(mantissas)) }
}

/// A batch of products in memory.
struct Job<'a, F> {
    a: &'a [u8],
    b: &'a [u8],
    /// Products that a 32-bit lane can hold.
    stretch: usize,
    batch: &'a Batch,
    finish: &'a F,
}

impl<F: Finish> Job<'_, F> {
    /// Computes a part; `out` begins at the part's first element.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn run<D: Dot, const S: usize, const MR: usize, A: Accumulator, T: Element>(&self, part: &Part, out: &mut [T]) {
        part.each(self.batch, ((self.a, D::BYTES), (self.b, D::BYTES)), out, |a, b, origin, out| {
            let product = Product { a, b, stretch: self.stretch, origin };
            product.run::<D, S, MR, A, T>(self.finish, out, self.batch.out.1);
        });
    }

    /// The same of words by bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn run_halves<T: Element>(&self, narrow: bool, part: &Part, out: &mut [T]) {
        part.each(self.batch, ((self.a, size_of::<i16>()), (self.b, 1)), out, |a, b, origin, out| {
            Halves { a, b, origin, narrow }.run(self.finish, out, self.batch.out.1);
        });
    }
}
