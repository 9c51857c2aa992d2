//! The inner loops: tiles of packed panels, and rows read in place.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi32, _mm_storeu_si128, _mm256_add_epi32, _mm256_add_epi64, _mm256_castsi256_si128,
    _mm256_cvtepi32_epi64, _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_madd_epi16, _mm256_set1_epi32,
    _mm256_setzero_si256, _mm256_storeu_si256,
};

use super::super::block::Accumulator;
use super::super::vnni::lanes::{LANES, Lanes};
use super::pack::{PAIRS, halves, load, save, some_words, words};

/// Rows of `b` that are read side by side when nothing is packed.
pub(super) const STREAMS: usize = 4;
/// Vectors of a panel's sixteen columns.
const HALVES: usize = LANES / PAIRS;

/// Sums of a tile in registers: of each slice of `a`, `MR` rows by sixteen columns.
pub(super) type Registers<const S: usize, const MR: usize> = [[[__m256i; HALVES]; MR]; S];

/// Adds the products of pairs of words.
#[target_feature(enable = "avx2")]
#[inline]
fn add(sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
}

/// A stretch of the dot products of `MR` rows of a panel of `a`, from row `first` on, with a panel of `b`.
#[target_feature(enable = "avx2")]
pub(super) fn tile<const S: usize, const MR: usize>(a: &[Lanes], first: usize, b: &[Lanes]) -> Registers<S, MR> {
    assert!(first + MR <= LANES, "the rows lie in one panel");
    let mut sums = [[[_mm256_setzero_si256(); HALVES]; MR]; S];
    for (a, b) in a.as_chunks::<S>().0.iter().zip(b) {
        let [low, high] = halves(b) else { continue };
        let columns = [load(low), load(high)];
        for (sums, a) in sums.iter_mut().zip(a) {
            for (sums, pair) in sums.iter_mut().zip(&a.0[first..first + MR]) {
                let pair = _mm256_set1_epi32(*pair);
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = add(*sum, pair, column);
                }
            }
        }
    }
    sums
}

/// Adds a tile to its sums; slice `s` counts `256^s` times.
#[target_feature(enable = "avx2")]
pub(super) fn empty<const S: usize, const MR: usize, A: Accumulator>(
    tile: &Registers<S, MR>,
    sums: &mut [[A; LANES]; MR],
) {
    for (s, rows) in tile.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(rows) {
            for (sums, vector) in sums.as_chunks_mut::<PAIRS>().0.iter_mut().zip(row) {
                let mut lanes = [0; PAIRS];
                save(*vector, &mut lanes);
                for (sum, lane) in sums.iter_mut().zip(lanes) {
                    *sum = *sum + (A::narrow(i64::from(lane)) << (8 * s as u32));
                }
            }
        }
    }
}

/// Dot products of the slices of a row of `a`, in words, with rows of `b` as they lie, whose sixteen elements have so
/// many bytes.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn dots<const BYTES: usize, const S: usize>(
    a: [&[__m256i]; S],
    b: [&[u8]; STREAMS],
) -> [[__m256i; STREAMS]; S] {
    let mut sums = [[_mm256_setzero_si256(); STREAMS]; S];
    let [(b0, r0), (b1, r1), (b2, r2), (b3, r3)] = b.map(|row| row.as_chunks::<BYTES>());
    for (at, (((b0, b1), b2), b3)) in b0.iter().zip(b1).zip(b2).zip(b3).enumerate() {
        let b = [b0, b1, b2, b3].map(|b| words::<BYTES>(b));
        step(&mut sums, a.map(|a| a[at]), b);
    }
    if !r0.is_empty() {
        let b = [r0, r1, r2, r3].map(|b| some_words::<BYTES>(b));
        step(&mut sums, a.map(|a| a[b0.len()]), b);
    }
    sums
}

#[target_feature(enable = "avx2")]
#[inline]
fn step<const S: usize>(sums: &mut [[__m256i; STREAMS]; S], a: [__m256i; S], b: [__m256i; STREAMS]) {
    for (sums, a) in sums.iter_mut().zip(a) {
        for (sum, b) in sums.iter_mut().zip(b) {
            *sum = add(*sum, a, b);
        }
    }
}

/// The sum of the lanes of each vector, none of which leaves 32 bits.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn sums_of([a, b, c, d]: [__m256i; STREAMS]) -> [i32; STREAMS] {
    let pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    let sums = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
    let mut memory = [0; STREAMS];
    // SAFETY: four lanes are half a vector.
    unsafe { _mm_storeu_si128(memory.as_mut_ptr().cast::<__m128i>(), sums) };
    memory
}

/// The same in 64 bits, which the sums may need.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn wide_sum_of(lanes: __m256i) -> i64 {
    let high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(lanes));
    let sums = _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(lanes)), high);
    let mut memory = [0i64; 4];
    // SAFETY: four elements of 64 bits are a vector.
    unsafe { _mm256_storeu_si256(memory.as_mut_ptr().cast(), sums) };
    memory.iter().sum()
}
