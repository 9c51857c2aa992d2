//! Sums of sixteen lanes: widened, joined from halves, rounded.

use std::arch::x86_64::{
    __m512i, _mm_cvtsi32_si128, _mm_cvtsi64_si128, _mm512_add_epi32, _mm512_add_epi64, _mm512_and_si512,
    _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_cvtepi32_epi64, _mm512_cvtepi64_epi32,
    _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_mask_blend_epi32, _mm512_mask_or_epi32, _mm512_max_epi32,
    _mm512_max_epi64, _mm512_min_epi32, _mm512_min_epi64, _mm512_mul_epi32, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_sll_epi64, _mm512_slli_epi64, _mm512_sra_epi32, _mm512_sra_epi64, _mm512_srli_epi64,
    _mm512_sub_epi64, _mm512_test_epi32_mask,
};

use super::super::super::block::Precision;
use crate::simd::ODD;

/// Sixteen sums as 64-bit integers.
#[target_feature(enable = "avx512f")]
#[inline]
pub(in crate::host) fn widen(sums: __m512i) -> [__m512i; 2] {
    let high = _mm512_extracti64x4_epi64::<1>(sums);
    [_mm512_cvtepi32_epi64(_mm512_castsi512_si256(sums)), _mm512_cvtepi32_epi64(high)]
}

/// Sixteen sums `256·high + low`.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn join([high, low]: [__m512i; 2]) -> [__m512i; 2] {
    let (mut sums, low) = (widen(high), widen(low));
    for (sums, low) in sums.iter_mut().zip(low) {
        *sums = _mm512_add_epi64(_mm512_slli_epi64::<8>(*sums), low);
    }
    sums
}

/// The same of the eight in even lanes, times as many scales.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn join_scaled(scales: __m512i, [high, low]: [__m512i; 2]) -> __m512i {
    let (high, low) = (_mm512_mul_epi32(scales, high), _mm512_mul_epi32(scales, low));
    _mm512_add_epi64(_mm512_slli_epi64::<8>(high), low)
}

/// Whether [`round`] computes the rescale: its results are narrowed from 32 bits.
pub(super) fn rounds(to: Precision) -> bool {
    to.limit <= i64::from(i32::MAX)
}

/// Clamps eight integers to a limit on either side.
#[target_feature(enable = "avx512f")]
#[inline]
fn clamp_eight(x: __m512i, limit: i64) -> __m512i {
    let limit = _mm512_set1_epi64(limit);
    _mm512_min_epi64(_mm512_max_epi64(x, _mm512_sub_epi64(_mm512_setzero_si512(), limit)), limit)
}

/// Rounds eight sums below 2^62 to `2^shift`, half to even, and clamps them, where [`rounds`] holds (rule N-2).
#[target_feature(enable = "avx512f")]
#[inline]
fn round_eight(x: __m512i, Precision { shift, limit }: Precision) -> __m512i {
    if shift > 0 {
        let by = _mm_cvtsi64_si128(shift.into());
        let odd = _mm512_and_si512(_mm512_sra_epi64(x, by), _mm512_set1_epi64(1));
        let raised = _mm512_add_epi64(_mm512_add_epi64(x, _mm512_set1_epi64((1 << (shift - 1)) - 1)), odd);
        clamp_eight(_mm512_sra_epi64(raised, by), limit)
    } else {
        // Beyond the limit is whatever is one more than fits, and so is 1·2^32.
        let by = shift.unsigned_abs().min(u32::BITS);
        let raised = _mm512_sll_epi64(clamp_eight(x, (limit >> by) + 1), _mm_cvtsi64_si128(by.into()));
        clamp_eight(raised, limit)
    }
}

/// [`round_eight`] of sixteen sums; in 32 bits. Vectors stay in registers: what is given to a closure goes
/// through memory.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn round([low, high]: [__m512i; 2], to: Precision) -> __m512i {
    let low = _mm512_cvtepi64_epi32(round_eight(low, to));
    let high = _mm512_cvtepi64_epi32(round_eight(high, to));
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

/// Whether [`round_high`] computes the rescale of products of 32 bits each.
pub(super) fn rounds_high(to: Precision) -> bool {
    (34..=62).contains(&to.shift) && to.limit <= i64::from(i32::MAX)
}

/// The same as [`round`] of products in even and in odd lanes, each below 2^62, where [`rounds_high`] holds: sixteen at
/// a time, because all that the lower 32 bits can decide is whether something is left under the half.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn round_high([even, odd]: [__m512i; 2], to: Precision) -> __m512i {
    let high = _mm512_mask_blend_epi32(ODD, _mm512_srli_epi64::<32>(even), odd);
    let low = _mm512_mask_blend_epi32(ODD, even, _mm512_slli_epi64::<32>(odd));
    let one = _mm512_set1_epi32(1);
    // At least two bits are rounded away, so that the last of them lies under the half.
    let high = _mm512_mask_or_epi32(high, _mm512_test_epi32_mask(low, low), high, one);
    let (by, limit) = (to.shift - 32, to.limit as i32);
    let (places, below_half) = (_mm_cvtsi32_si128(by), _mm512_set1_epi32((1 << (by - 1)) - 1));
    let odd = _mm512_and_si512(_mm512_sra_epi32(high, places), one);
    let raised = _mm512_add_epi32(_mm512_add_epi32(high, below_half), odd);
    let above = _mm512_max_epi32(_mm512_sra_epi32(raised, places), _mm512_set1_epi32(-limit));
    _mm512_min_epi32(above, _mm512_set1_epi32(limit))
}

/// The same as [`round`] of products in even and in odd lanes.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn round_low([even, odd]: [__m512i; 2], to: Precision) -> __m512i {
    let odd = _mm512_slli_epi64::<32>(round_eight(odd, to));
    _mm512_mask_blend_epi32(ODD, round_eight(even, to), odd)
}

/// Whichever of the two computes it.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn round_products(products: [__m512i; 2], to: Precision) -> __m512i {
    if rounds_high(to) { round_high(products, to) } else { round_low(products, to) }
}
