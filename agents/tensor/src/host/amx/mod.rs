//! Exact matrix products `a·bᵀ` by AMX: `tdpb..d` multiplies 16 rows of 64 bytes by as many, and adds to 16 × 16 sums
//! of 32 bits.
//!
//! *Bytes.* Rows of `b`, weights mostly, are read where they lie, and rows of `a` are packed into panels, once. A
//! tile's rows are then those of `b`, and tiles are turned on their way out: that costs less than packing all of `b` in
//! every product.
//!
//! *Words.* `a = 256·a1 + a0`, `b = 256·b1 + b0`, with `a1`, `b1` signed and `a0`, `b0` not: four products of bytes,
//! each below 2^28 in magnitude over 4096 elements, since `255²·4096 < 2^28`.
//!
//! *Words by bytes.* `a` alone is split: two products of bytes. Rows of `b` are read where they lie, as those of bytes.
//!
//! A few rows of `a` are left to VNNI, which every processor with AMX has.
//!
//! | module | what lives there |
//! |---|---|
//! | `permit` | whether there are tiles |
//! | `tile` | the inner loop, in assembly |
//! | `slices` | words as bytes |
//! | `product` | one product |

mod permit;
mod product;
mod slices;
mod tile;

use super::block::Element;
use super::vnni::finish::Finish;
use super::vnni::matrix::{Batch, Matrix};
use super::vnni::share::{Part, share};
use super::vnni::{Operand, Vnni, bytes_of};
use crate::slice::{Slice, SliceMut, each_width};
use product::{Product, Target};
use tile::Tiles;

/// Rows of `a` from which on tiles are faster than vectors, for bytes and for words.
const BYTES_ROWS: usize = 4;
const WORDS_ROWS: usize = 12;

/// Proof that this processor has what these kernels use, and that the system lets them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Amx {
    vnni: Vnni,
    /// Threads to share large products between.
    threads: usize,
}

impl Amx {
    pub(crate) fn detect(threads: usize) -> Option<Self> {
        let vnni = Vnni::detect(threads)?;
        permit::tiles().then_some(Self { vnni, threads })
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
        let rows = batch.a.0.rows;
        match (a, b) {
            ((Slice::I8(a), _), (Slice::I8(b), _)) if rows >= BYTES_ROWS => {
                // 4096 products of 2^14.
                let narrow = finish.narrow(1 << 26);
                let job = Job { a: bytes_of(a), b: bytes_of(b), bytes: (1, 1), narrow, batch, finish };
                self.compute(&job, out);
            }
            ((Slice::I16(a), a_limit), (Slice::I16(b), b_limit)) if rows >= WORDS_ROWS => {
                let narrow = finish.narrow(batch.bound(a_limit, b_limit));
                let job = Job { a: bytes_of(a), b: bytes_of(b), bytes: (2, 2), narrow, batch, finish };
                self.compute(&job, out);
            }
            ((Slice::I16(a), a_limit), (Slice::I8(b), b_limit)) if rows >= BYTES_ROWS => {
                let narrow = finish.narrow(batch.bound(a_limit, b_limit));
                let job = Job { a: bytes_of(a), b: bytes_of(b), bytes: (2, 1), narrow, batch, finish };
                self.compute(&job, out);
            }
            _ => return self.vnni.multiply((a, b), batch, finish, out),
        }
        true
    }

    fn compute(self, job: &Job<'_, impl Finish>, out: SliceMut<'_>) {
        each_width!(SliceMut, out, out => {
            // SAFETY: `self` is the proof that the features are there, and the tiles.
            share(self.threads, job.batch, job.bytes.0, out, |part, out| unsafe { job.run(part, out) });
        });
    }
}

/// A batch of products in memory.
struct Job<'a, F> {
    a: &'a [u8],
    b: &'a [u8],
    /// Bytes of an element of `a`, and of `b`.
    bytes: (usize, usize),
    /// Whether sums come in 32 bits.
    narrow: bool,
    batch: &'a Batch,
    finish: &'a F,
}

impl<F: Finish> Job<'_, F> {
    /// Computes a part; `out` begins at the part's first element.
    ///
    /// # Safety
    /// There are tiles.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn run<T: Element>(&self, part: &Part, out: &mut [T]) {
        let Part { products, rows, columns } = part;
        let first = self.batch.place(products.start, rows.start, columns.start);
        // SAFETY: the caller vouches for them.
        let tiles = unsafe { Tiles::configure() };
        for number in products.clone() {
            let (a, b) = self.batch.operands(number);
            let product = Product {
                a: Matrix::new(self.a, a, self.bytes.0).part(rows.start, rows.len()),
                b: Matrix::new(self.b, b, self.bytes.1).part(columns.start, columns.len()),
                origin: (rows.start, columns.start),
            };
            let start = self.batch.place(number, rows.start, columns.start) - first;
            let (narrow, stride) = (self.narrow, self.batch.out.1);
            let target = Target { finish: self.finish, narrow, out: &mut out[start..], stride };
            match self.bytes {
                (1, _) => product.bytes(&tiles, target),
                (_, 1) => product.words_by_bytes(&tiles, target),
                _ => product.words(&tiles, target),
            }
        }
    }
}
