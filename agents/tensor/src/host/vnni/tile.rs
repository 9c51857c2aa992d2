//! The inner loops: tiles of packed panels, and rows read in place.

use std::arch::x86_64::{
    __m512i, _MM_HINT_T0, _mm_prefetch, _mm512_add_epi32, _mm512_add_epi64, _mm512_dpbusd_epi32, _mm512_dpwssd_epi32,
    _mm512_maskz_loadu_epi8, _mm512_reduce_add_epi32, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_shuffle_i32x4, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
    _mm512_xor_si512,
};

use super::super::block::Accumulator;
use super::finish::widen;
use super::lanes::{LANES, Lanes, VECTOR, first_bytes, load, store};
use super::pack::transpose;

/// Rows of `b` that are read side by side when nothing is packed.
pub(super) const STREAMS: usize = 4;

/// One of VNNI's two dot products.
pub(super) trait Dot {
    /// What `b`'s words are xored with.
    const FLIP: i32;
    /// Bytes of an element.
    const BYTES: usize;

    /// Adds the products of the elements of each word.
    ///
    /// # Safety
    /// The processor has AVX-512 VNNI.
    unsafe fn dot(sum: __m512i, a: __m512i, b: __m512i) -> __m512i;

    /// What the flipped words of `b` add to every dot product with this row of `a`: nothing, where none is flipped.
    ///
    /// # Safety
    /// The processor has AVX-512 VNNI.
    #[inline]
    unsafe fn bias(_: &[u8]) -> i64 {
        0
    }
}

/// The products of a vector of `b` as it lies in memory with a row's in each of `S` slices.
pub(super) trait Slices<const S: usize> {
    /// Adds the products of the elements of each word of `b` with those of each slice to that slice's lanes.
    ///
    /// # Safety
    /// The processor has AVX-512 VNNI.
    unsafe fn add(lanes: [__m512i; S], a: [__m512i; S], b: __m512i) -> [__m512i; S];
}

impl<D: Dot, const S: usize> Slices<S> for D {
    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn add(mut lanes: [__m512i; S], a: [__m512i; S], b: __m512i) -> [__m512i; S] {
        let b = _mm512_xor_si512(b, _mm512_set1_epi32(D::FLIP));
        for (lanes, a) in lanes.iter_mut().zip(a) {
            // SAFETY: VNNI is enabled for this function.
            *lanes = unsafe { D::dot(*lanes, a, b) };
        }
        lanes
    }
}

/// Signed bytes by bytes with a flipped top bit.
pub(super) struct Bytes;
/// Signed 16-bit words.
pub(super) struct Words;

impl Dot for Bytes {
    const FLIP: i32 = 0x8080_8080u32 as i32;
    const BYTES: usize = 1;

    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn dot(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        _mm512_dpbusd_epi32(sum, b, a)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn bias(row: &[u8]) -> i64 {
        let top = _mm512_set1_epi8(i8::MIN);
        let mut sum = _mm512_setzero_si512();
        for part in row.chunks(VECTOR) {
            // SAFETY: the mask admits the bytes of `part`.
            let part = unsafe { _mm512_maskz_loadu_epi8(first_bytes(part.len()), part.as_ptr().cast()) };
            // 4096 products of 2^14 stay below 2^27.
            sum = _mm512_dpbusd_epi32(sum, top, part);
        }
        i64::from(_mm512_reduce_add_epi32(sum))
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

/// Sums of a tile in 64 bits or fewer: `MR` rows by `NR` panels of columns.
pub(super) type Sums<A, const MR: usize, const NR: usize> = [[[A; LANES]; NR]; MR];

/// The same in registers, for each of `S` slices of `a`.
pub(super) type Registers<const S: usize, const MR: usize, const NR: usize> = [[[__m512i; NR]; MR]; S];

/// A stretch of the dot products of `MR` rows of a panel of `a`, from row `first` on, with `NR` panels of `b`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn tile<D: Dot, const S: usize, const MR: usize, const NR: usize>(
    a: &[Lanes],
    first: usize,
    b: &[Lanes],
) -> Registers<S, MR, NR> {
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
    lanes
}

/// Adds a tile to its sums; slice `s` counts `256^s` times.
#[target_feature(enable = "avx512f")]
pub(super) fn empty<const S: usize, const MR: usize, const NR: usize, A: Accumulator>(
    lanes: &Registers<S, MR, NR>,
    sums: &mut Sums<A, MR, NR>,
) {
    for (s, lanes) in lanes.iter().enumerate() {
        for (sums, lanes) in sums.iter_mut().zip(lanes) {
            for (sums, vector) in sums.iter_mut().zip(lanes) {
                let part = store(*vector);
                for (sum, lane) in sums.iter_mut().zip(&part.0) {
                    *sum = *sum + (A::narrow(i64::from(*lane)) << (8 * s as u32));
                }
            }
        }
    }
}

/// Dot products of one row of `a` with the first `columns` of sixteen rows of `b`, all of one length: sixteen parts of
/// each, for each slice of `a`. What lies `ahead` bytes after the rows is fetched meanwhile.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
#[inline]
pub(super) fn dots<D: Slices<S>, const S: usize>(
    a: [&[u8]; S],
    (b, columns): (&[&[u8]; LANES], usize),
    ahead: usize,
    parts: &mut [[__m512i; LANES]; S],
) {
    for (stream, b) in (0..columns).step_by(STREAMS).zip(b.as_chunks::<STREAMS>().0) {
        let lanes = streams::<D, S>(a, b, ahead);
        for (j, lanes) in lanes.iter().enumerate() {
            for (parts, lanes) in parts.iter_mut().zip(lanes) {
                parts[stream + j] = *lanes;
            }
        }
    }
}

/// The same of rows that are read side by side: of each row its slices' parts.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
#[inline]
fn streams<D: Slices<S>, const S: usize>(a: [&[u8]; S], b: &[&[u8]; STREAMS], ahead: usize) -> [[__m512i; S]; STREAMS] {
    let bytes = a[0].len();
    assert!(a.iter().all(|row| row.len() == bytes), "rows of one length");
    assert!(b.iter().all(|row| row.len() == bytes), "rows of one length");
    let zero = _mm512_setzero_si512();
    let mut lanes = [[zero; S]; STREAMS];
    for start in (0..bytes).step_by(VECTOR) {
        // Bytes past the end read as zeros; where `b`'s are flipped, they meet the zeros of `a`.
        let mask = first_bytes(bytes - start);
        let mut words = [zero; S];
        for (word, a) in words.iter_mut().zip(&a) {
            // SAFETY: `start` is below the length of every row, and the mask admits no byte past it.
            *word = unsafe { _mm512_maskz_loadu_epi8(mask, a.as_ptr().add(start).cast()) };
        }
        for (lanes, b) in lanes.iter_mut().zip(b) {
            let address = b.as_ptr().wrapping_add(start);
            // Prefetching is no access: the address may lie beyond the matrix.
            _mm_prefetch::<_MM_HINT_T0>(address.wrapping_add(ahead).cast());
            // SAFETY: as above.
            let column = unsafe { _mm512_maskz_loadu_epi8(mask, address.cast()) };
            // SAFETY: VNNI is enabled for this function.
            *lanes = unsafe { D::add(*lanes, words, column) };
        }
    }
    lanes
}

/// The sum of the lanes of each of sixteen vectors, none of which leaves 32 bits.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn sums_of(vectors: &[__m512i; LANES]) -> __m512i {
    // Each level adds halves of two vectors into one: half as many vectors, each with lanes of twice as many.
    let zero = _mm512_setzero_si512();
    let (mut pairs, mut fours, mut eights) = ([zero; LANES / 2], [zero; LANES / 4], [zero; LANES / 8]);
    for (pair, [x, y]) in pairs.iter_mut().zip(vectors.as_chunks::<2>().0) {
        *pair = _mm512_add_epi32(_mm512_unpacklo_epi32(*x, *y), _mm512_unpackhi_epi32(*x, *y));
    }
    for (four, [x, y]) in fours.iter_mut().zip(pairs.as_chunks::<2>().0) {
        *four = _mm512_add_epi32(_mm512_unpacklo_epi64(*x, *y), _mm512_unpackhi_epi64(*x, *y));
    }
    for (eight, [x, y]) in eights.iter_mut().zip(fours.as_chunks::<2>().0) {
        *eight = quarters(*x, *y);
    }
    quarters(eights[0], eights[1])
}

/// The same in 64 bits, which the sums may need.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn wide_sums_of(vectors: &[__m512i; LANES]) -> [__m512i; 2] {
    let (rows, mut sums) = (transpose(*vectors), [_mm512_setzero_si512(); 2]);
    for row in &rows {
        for (sum, row) in sums.iter_mut().zip(widen(*row)) {
            *sum = _mm512_add_epi64(*sum, row);
        }
    }
    sums
}

/// The first quarter of `x` and its second, its third and its fourth; then of `y`: each pair's sum.
#[target_feature(enable = "avx512f")]
#[inline]
fn quarters(x: __m512i, y: __m512i) -> __m512i {
    _mm512_add_epi32(_mm512_shuffle_i32x4::<0x88>(x, y), _mm512_shuffle_i32x4::<0xdd>(x, y))
}
