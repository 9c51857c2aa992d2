//! Exact matrix products `a·bᵀ` by AVX-512 VNNI.
//!
//! *Bytes.* `vpdpbusd` adds four products of an unsigned and a signed byte to each 32-bit lane, without saturating. `b` is made
//! unsigned by flipping its top bit, which adds 128: `Σa·b = Σa·(b + 128) − 128·Σa`.
//!
//! *Words.* `vpdpwssd` adds two products of 16-bit words to a lane, which only a few products of the full range fit. So
//! `a = 256·a1 + a0` with `|a0|, |a1| ≤ 128` is multiplied slice by slice, and lanes are emptied into 64 bits before
//! they can overflow. Operands whose limits leave room in the lane are not sliced.
//!
//! Many rows of `a` are worth packing both operands into panels and computing tiles that stay in registers; a few rows
//! read `b` once, in place.

use std::arch::x86_64::{
    __m512i, _mm512_dpbusd_epi32, _mm512_dpwssd_epi32, _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_set1_epi32,
    _mm512_setzero_si512, _mm512_storeu_si512, _mm512_xor_si512,
};

use rayon::prelude::*;

use super::block::{Accumulator, Element, fits_i32, rescale};
use super::elementwise::Precision;
use super::pack::{LANES, Lanes, VECTOR, WORD, first_bytes, pack};
use crate::tensor::{SliceMut, each_width};

/// From this many rows of `a` on, packing pays.
const PACKED_ROWS: usize = 12;
/// Vectors of columns of a tile.
const NR: usize = 3;
/// Columns of a tile.
const COLUMNS: usize = NR * LANES;
/// Rows of `b` that are read side by side when nothing is packed.
const STREAMS: usize = 4;
/// Shortest stretch of the dot product between two emptyings of the lanes for which slicing `a` is no gain.
const UNSLICED_STRETCH: usize = 128;

/// Rows of `a` times bytes of `b` below which other threads cost more than they bring.
const WORTH_SHARING: usize = 1 << 22;

/// Proof that this processor has what these kernels use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Vnni {
    /// Threads to share large products between.
    threads: usize,
}

impl Vnni {
    pub(crate) fn detect(threads: usize) -> Option<Self> {
        let there = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni");
        there.then_some(Self { threads })
    }

    /// Rule N-11 for bytes: `a` is m × k, `b` is n × k, k at most 4096.
    pub(crate) fn int8(self, a: &[i8], b: &[i8], k: usize, to: Precision, out: SliceMut<'_>) {
        let bias = a.chunks_exact(k).map(|row| 128 * row.iter().map(|x| i64::from(*x)).sum::<i64>()).collect();
        let product = Product { a: vec![bytes_of(a)], b: bytes_of(b), row_bytes: k, bias, stretch: usize::MAX };
        // 4096 products of 2^14 stay below 2^27.
        let narrow = fits_i32(1 << 27, to.limit);
        if narrow {
            self.compute::<Bytes, 1, 8, i32>(&product, to, out);
        } else {
            self.compute::<Bytes, 1, 8, i64>(&product, to, out);
        }
    }

    /// Rule N-11 for words within the given limits: `a` is m × k, `b` is n × k.
    pub(crate) fn int16(
        self,
        (a, a_limit): (&[i16], i64),
        (b, b_limit): (&[i16], i64),
        k: usize,
        to: Precision,
        out: SliceMut<'_>,
    ) {
        // Products that a lane holds; at least two, since 2·32767² < 2^31.
        let room = |limit: i64| ((1i64 << 31) - 1) / (limit * b_limit);
        let unsliced = room(a_limit).min(i64::from(u16::MAX)) as usize;
        let (b, bias, row_bytes) = (bytes_of(b), vec![0; a.len() / k], 2 * k);
        if unsliced >= k.min(UNSLICED_STRETCH) {
            let product = Product { a: vec![bytes_of(a)], b, row_bytes, bias, stretch: unsliced };
            self.compute::<Words, 1, 8, i64>(&product, to, out);
        } else {
            let (mut high, mut low) = (vec![0; a.len()], vec![0; a.len()]);
            // SAFETY: `self` is the proof that the features are there.
            unsafe { slices(a, &mut high, &mut low) };
            let stretch = room(128) as usize;
            let product = Product { a: vec![bytes_of(&low), bytes_of(&high)], b, row_bytes, bias, stretch };
            self.compute::<Words, 2, 4, i64>(&product, to, out);
        }
    }

    fn compute<D: Dot, const S: usize, const MR: usize, A: Accumulator>(
        self,
        product: &Product<'_>,
        to: Precision,
        out: SliceMut<'_>,
    ) {
        each_width!(SliceMut, out, out => self.share::<D, S, MR, A, _>(product, to, out));
    }

    /// Splits the rows of `a` between threads, or the rows of `b` where `a` has one.
    fn share<D: Dot, const S: usize, const MR: usize, A: Accumulator, T: Element>(
        self,
        product: &Product<'_>,
        to: Precision,
        out: &mut [T],
    ) {
        // SAFETY: `self` is the proof that the features are there.
        let run = |product: &Product<'_>, out: &mut [T]| unsafe { product.run::<D, S, MR, A, _>(to, out) };
        let width = product.row_bytes;
        let (m, n) = (product.bias.len(), product.b.len() / width);
        if self.threads > 1 && m * n * width >= WORTH_SHARING && m == 1 {
            let columns = n.div_ceil(self.threads).next_multiple_of(STREAMS);
            let parts = out.par_chunks_mut(columns).zip(product.b.par_chunks(columns * width));
            parts.for_each(|(out, b)| run(&Product { b, ..product.clone() }, out));
        } else if self.threads > 1 && m * n * width >= WORTH_SHARING && m >= 2 * LANES {
            let rows = m.div_ceil(self.threads).next_multiple_of(LANES);
            let parts = out.par_chunks_mut(rows * n).zip(product.bias.par_chunks(rows)).enumerate();
            parts.for_each(|(part, (out, bias))| {
                let start = part * rows * width;
                let a = product.a.iter().map(|a| &a[start..start + bias.len() * width]).collect();
                run(&Product { a, bias: bias.to_vec(), ..product.clone() }, out);
            });
        } else {
            run(product, out);
        }
    }
}

/// `a = 256·high + low` with both at most 128 in magnitude.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn slices(a: &[i16], high: &mut [i16], low: &mut [i16]) {
    for ((a, high), low) in a.iter().zip(high).zip(low) {
        let rounded = (i32::from(*a) + 128) >> 8;
        *high = rounded as i16;
        *low = (i32::from(*a) - (rounded << 8)) as i16;
    }
}

/// Memory of mantissas as bytes.
fn bytes_of<T: Element>(mantissas: &[T]) -> &[u8] {
    // SAFETY: integers have no padding, and a byte needs no alignment.
    unsafe { std::slice::from_raw_parts(mantissas.as_ptr().cast(), size_of_val(mantissas)) }
}

/// One of VNNI's two dot products.
trait Dot {
    /// What `b`'s words are xored with.
    const FLIP: i32;
    /// Bytes of an element.
    const BYTES: usize;

    /// Adds the products of the elements of each word.
    ///
    /// # Safety
    /// The processor has AVX-512 VNNI.
    unsafe fn dot(sum: __m512i, a: __m512i, b: __m512i) -> __m512i;
}

/// Signed bytes by bytes with a flipped top bit.
struct Bytes;
/// Signed 16-bit words.
struct Words;

impl Dot for Bytes {
    const FLIP: i32 = 0x8080_8080u32 as i32;
    const BYTES: usize = 1;
    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn dot(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        _mm512_dpbusd_epi32(sum, b, a)
    }
}

impl Dot for Words {
    const FLIP: i32 = 0;
    const BYTES: usize = 2;
    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn dot(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        _mm512_dpwssd_epi32(sum, a, b)
    }
}

/// A product to compute, or a part of one: `a = Σ 256^s · a[s]`, all as bytes of rows of `row_bytes`.
#[derive(Clone)]
struct Product<'a> {
    a: Vec<&'a [u8]>,
    b: &'a [u8],
    row_bytes: usize,
    /// What to subtract from every sum of a row of `a`.
    bias: Vec<i64>,
    /// Products that a 32-bit lane can hold.
    stretch: usize,
}

impl Product<'_> {
    /// Computes with `S` slices of `a`, `MR` rows a tile, sums in `A`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn run<D: Dot, const S: usize, const MR: usize, A: Accumulator, T: Element>(&self, to: Precision, out: &mut [T]) {
        let (m, n) = (self.bias.len(), self.b.len() / self.row_bytes);
        assert!(self.a.len() == S && self.a.iter().all(|a| a.len() == m * self.row_bytes), "slices of m rows");
        assert!(self.b.len() == n * self.row_bytes && out.len() == m * n, "n rows, and m × n elements");
        if m < PACKED_ROWS {
            self.stream::<D, S, A, T>(n, to, out);
        } else {
            self.tiles::<D, S, MR, A, T>(n, to, out);
        }
    }

    /// Packs `a` whole, `b` a few columns at a time, and computes tiles.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn tiles<D: Dot, const S: usize, const MR: usize, A: Accumulator, T: Element>(
        &self,
        n: usize,
        to: Precision,
        out: &mut [T],
    ) {
        let words = self.row_bytes.div_ceil(WORD);
        let panel_bytes = LANES * self.row_bytes;
        // Panel p of slice s: every S-th group of lanes from p·words·S + s on.
        let mut a = vec![Lanes::ZERO; self.bias.len().div_ceil(LANES) * words * S];
        for (slice, from) in self.a.iter().enumerate() {
            for (panel, rows) in a.chunks_exact_mut(words * S).zip(from.chunks(panel_bytes)) {
                pack(rows, self.row_bytes, 0, &mut panel[slice..], S);
            }
        }
        let stretch = (self.stretch / (WORD / D::BYTES)).clamp(1, words);
        let mut b = vec![Lanes::ZERO; words * NR];
        for (tile_column, columns) in self.b.chunks(NR * panel_bytes).enumerate() {
            for (i, rows) in columns.chunks(panel_bytes).enumerate() {
                pack(rows, self.row_bytes, D::FLIP, &mut b[i..], NR);
            }
            let (first, width) = (tile_column * COLUMNS, columns.len() / self.row_bytes);
            for (tile_row, bias) in self.bias.chunks(MR).enumerate() {
                let row = tile_row * MR;
                let panel = &a[row / LANES * words * S..][..words * S];
                let mut sums = [[A::ZERO; COLUMNS]; MR];
                for (a, b) in panel.chunks(stretch * S).zip(b.chunks(stretch * NR)) {
                    tile::<D, S, MR, A>(a, row % LANES, b, &mut sums);
                }
                for (i, (sums, bias)) in sums.iter_mut().zip(bias).enumerate() {
                    let bias = A::narrow(*bias);
                    for sum in sums.iter_mut() {
                        *sum = *sum - bias;
                    }
                    rescale(sums, to.shift, to.limit);
                    let start = (row + i) * n + first;
                    for (out, sum) in out[start..start + width].iter_mut().zip(sums) {
                        *out = T::narrow(sum.wide());
                    }
                }
            }
        }
    }

    /// Reads `b` once, a few rows side by side, against every row of `a`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn stream<D: Dot, const S: usize, A: Accumulator, T: Element>(&self, n: usize, to: Precision, out: &mut [T]) {
        let width = self.row_bytes;
        // A lane gets a sixteenth of the products.
        let stretch = (self.stretch.saturating_mul(LANES) / (VECTOR / D::BYTES)).max(1).saturating_mul(VECTOR);
        for (group, columns) in self.b.chunks(STREAMS * width).enumerate() {
            for (m, bias) in self.bias.iter().enumerate() {
                let mut sums = [A::ZERO; STREAMS];
                for start in (0..width).step_by(stretch) {
                    let range = start..width.min(start.saturating_add(stretch));
                    let a: [&[u8]; S] = std::array::from_fn(|s| &self.a[s][m * width..][range.clone()]);
                    if columns.len() == STREAMS * width {
                        let b: [&[u8]; STREAMS] = std::array::from_fn(|j| &columns[j * width..][range.clone()]);
                        dots::<D, S, STREAMS, A>(a, b, &mut sums);
                    } else {
                        for (sum, row) in sums.iter_mut().zip(columns.chunks_exact(width)) {
                            let mut one = [*sum];
                            dots::<D, S, 1, A>(a, [&row[range.clone()]], &mut one);
                            [*sum] = one;
                        }
                    }
                }
                for sum in &mut sums {
                    *sum = *sum - A::narrow(*bias);
                }
                rescale(&mut sums, to.shift, to.limit);
                let start = m * n + group * STREAMS;
                for (out, sum) in out[start..start + columns.len() / width].iter_mut().zip(sums) {
                    *out = T::narrow(sum.wide());
                }
            }
        }
    }
}

/// Adds a stretch of the dot products of `MR` rows of a panel of `a`, from row `first` on, with `NR` panels of `b`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn tile<D: Dot, const S: usize, const MR: usize, A: Accumulator>(
    a: &[Lanes],
    first: usize,
    b: &[Lanes],
    sums: &mut [[A; COLUMNS]; MR],
) {
    assert!(first + MR <= LANES, "the rows lie in one panel");
    let zero = _mm512_setzero_si512();
    let mut lanes = [[[zero; NR]; MR]; S];
    for (a, b) in a.as_chunks::<S>().0.iter().zip(b.as_chunks::<NR>().0) {
        let mut columns = [zero; NR];
        for (vector, panel) in columns.iter_mut().zip(b) {
            *vector = load(panel);
        }
        for (lanes, a) in lanes.iter_mut().zip(a) {
            let words = &a.0[first..first + MR];
            for (lanes, word) in lanes.iter_mut().zip(words) {
                let word = _mm512_set1_epi32(*word);
                for (lanes, column) in lanes.iter_mut().zip(columns) {
                    // SAFETY: VNNI is enabled for this function.
                    *lanes = unsafe { D::dot(*lanes, word, column) };
                }
            }
        }
    }
    for (s, lanes) in lanes.iter().enumerate() {
        for (sums, lanes) in sums.iter_mut().zip(lanes) {
            for (sums, vector) in sums.as_chunks_mut::<LANES>().0.iter_mut().zip(lanes) {
                let part = store(*vector);
                for (sum, lane) in sums.iter_mut().zip(&part.0) {
                    *sum = *sum + (A::narrow(i64::from(*lane)) << (8 * s as u32));
                }
            }
        }
    }
}

/// Adds a stretch of the dot products of one row of `a` with `J` rows of `b`, all of one length.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn dots<D: Dot, const S: usize, const J: usize, A: Accumulator>(a: [&[u8]; S], b: [&[u8]; J], sums: &mut [A; J]) {
    let bytes = a[0].len();
    assert!(a.iter().chain(&b).all(|row| row.len() == bytes), "rows of one length");
    let flip = _mm512_set1_epi32(D::FLIP);
    let zero = _mm512_setzero_si512();
    let mut lanes = [[zero; J]; S];
    for start in (0..bytes).step_by(VECTOR) {
        // Bytes past the end read as zeros; flipped, they meet the zeros of `a`.
        let mask = first_bytes(bytes - start);
        let mut words = [zero; S];
        for (word, a) in words.iter_mut().zip(&a) {
            // SAFETY: `start` is below the length of every row, and the mask admits no byte past it.
            *word = unsafe { _mm512_maskz_loadu_epi8(mask, a.as_ptr().add(start).cast()) };
        }
        for (j, b) in b.iter().enumerate() {
            // SAFETY: as above.
            let column = unsafe { _mm512_maskz_loadu_epi8(mask, b.as_ptr().add(start).cast()) };
            let column = _mm512_xor_si512(column, flip);
            for (lanes, word) in lanes.iter_mut().zip(words) {
                // SAFETY: VNNI is enabled for this function.
                lanes[j] = unsafe { D::dot(lanes[j], word, column) };
            }
        }
    }
    for (s, lanes) in lanes.iter().enumerate() {
        for (sum, vector) in sums.iter_mut().zip(lanes) {
            let total: i64 = store(*vector).0.iter().map(|lane| i64::from(*lane)).sum();
            *sum = *sum + A::narrow(total << (8 * s as u32));
        }
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(lanes: &Lanes) -> __m512i {
    // SAFETY: `Lanes` has the size of a vector.
    unsafe { _mm512_loadu_si512((&raw const *lanes).cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store(vector: __m512i) -> Lanes {
    let mut lanes = Lanes::ZERO;
    // SAFETY: `Lanes` has the size of a vector.
    unsafe { _mm512_storeu_si512((&raw mut lanes).cast(), vector) };
    lanes
}
