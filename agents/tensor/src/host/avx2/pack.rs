//! Panels: 16 rows of a matrix interleaved pair by pair, so that one word of 32 bits of [`Lanes`] holds two elements of
//! a row.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm256_add_epi16, _mm256_cvtepi8_epi16, _mm256_loadu_si256,
    _mm256_permute2x128_si256, _mm256_setzero_si256, _mm256_slli_epi16, _mm256_srai_epi16, _mm256_srli_epi16,
    _mm256_storeu_si256, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};

use super::super::vnni::lanes::{LANES, Lanes};
use super::super::vnni::matrix::Matrix;

/// Elements of a vector of words.
pub(super) const ELEMENTS: usize = 16;
/// 32-bit lanes of a vector, pairs of elements.
pub(super) const PAIRS: usize = 8;

/// Half of a group of lanes.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load(half: &[i32; PAIRS]) -> __m256i {
    // SAFETY: eight lanes are a vector.
    unsafe { _mm256_loadu_si256((&raw const *half).cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn save(vector: __m256i, half: &mut [i32; PAIRS]) {
    // SAFETY: eight lanes are a vector.
    unsafe { _mm256_storeu_si256((&raw mut *half).cast(), vector) };
}

/// The halves of a group of lanes.
pub(super) const fn halves(lanes: &Lanes) -> &[[i32; PAIRS]] {
    lanes.0.as_chunks().0
}

/// Sixteen elements, of `BYTES / 16` bytes each, as words.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn words<const BYTES: usize>(elements: &[u8; BYTES]) -> __m256i {
    let address = elements.as_ptr();
    if BYTES == ELEMENTS {
        // SAFETY: sixteen bytes.
        _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(address.cast::<__m128i>()) })
    } else {
        assert!(BYTES == 2 * ELEMENTS, "sixteen bytes or words");
        // SAFETY: thirty-two bytes.
        unsafe { _mm256_loadu_si256(address.cast()) }
    }
}

/// At most sixteen elements as words, and zeros.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn some_words<const BYTES: usize>(elements: &[u8]) -> __m256i {
    if let Some(all) = elements.first_chunk() {
        return words::<BYTES>(all);
    }
    let mut all = [0; BYTES];
    all[..elements.len()].copy_from_slice(elements);
    words::<BYTES>(&all)
}

/// Interleaves `rows` (at most 16; absent ones count as zeros) whose sixteen elements have so many bytes. Pair `w` of
/// row `r` goes to `panel[w · stride].0[r]`; elements past the end of a row are zeros.
#[target_feature(enable = "avx2")]
pub(super) fn pack<const BYTES: usize>(rows: &Matrix<'_>, panel: &mut [Lanes], stride: usize) {
    assert!(rows.rows <= LANES, "at most 16 rows");
    assert!(panel.len().div_ceil(stride) == (rows.width * ELEMENTS / BYTES).div_ceil(2), "the panel holds every pair");
    for (vector, start) in (0..rows.width).step_by(BYTES).enumerate() {
        let end = rows.width.min(start + BYTES);
        for half in 0..LANES / PAIRS {
            let mut square = [_mm256_setzero_si256(); PAIRS];
            for (row, words) in (half * PAIRS..rows.rows).zip(&mut square) {
                *words = some_words::<BYTES>(&rows.row(row)[start..end]);
            }
            let groups = panel[vector * PAIRS * stride..].iter_mut().step_by(stride);
            for (lanes, pairs) in groups.zip(transpose(square)) {
                save(pairs, &mut lanes.0.as_chunks_mut().0[half]);
            }
        }
    }
}

/// `word = 256·high + low` for each word, both at most 128 in magnitude: `[low, high]`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn slices(words: __m256i) -> [__m256i; 2] {
    let low = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(words));
    // A low byte of 128 and more counts as negative, and one more of the high.
    let carry = _mm256_srli_epi16::<15>(_mm256_slli_epi16::<8>(words));
    [low, _mm256_add_epi16(_mm256_srai_epi16::<8>(words), carry)]
}

/// Splits the words of a panel: group `w` of lanes at `2·w` becomes low slices there and high ones at `2·w + 1`.
#[target_feature(enable = "avx2")]
pub(super) fn split(panel: &mut [Lanes]) {
    for [low, high] in panel.as_chunks_mut::<2>().0 {
        for (low, high) in low.0.as_chunks_mut().0.iter_mut().zip(high.0.as_chunks_mut().0) {
            let [l, h] = slices(load(low));
            save(l, low);
            save(h, high);
        }
    }
}

/// Transposes 8 × 8 lanes.
#[target_feature(enable = "avx2")]
#[inline]
fn transpose(r: [__m256i; PAIRS]) -> [__m256i; PAIRS] {
    // Lanes of row pairs, then pairs of those: `u[4i + j]` holds, in half l, column 4l + j of rows 4i..4i+4.
    let (mut t, mut u) = (r, r);
    for i in 0..PAIRS / 2 {
        t[2 * i] = _mm256_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    for i in (0..PAIRS).step_by(4) {
        u[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    let mut columns = u;
    for j in 0..4 {
        columns[j] = _mm256_permute2x128_si256::<0x20>(u[j], u[4 + j]);
        columns[4 + j] = _mm256_permute2x128_si256::<0x31>(u[j], u[4 + j]);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::super::super::vnni::matrix::View;
    use super::*;

    /// Packs bytes, or words of two bytes, and compares every pair.
    fn interleaves<const BYTES: usize>(count: usize, row: usize, stride: usize) {
        let size = BYTES / ELEMENTS;
        let bytes: Vec<u8> = (0..count * row * size).map(|i| (i * 7 + i / 251) as u8).collect();
        let mut panel = vec![Lanes::ZERO; row.div_ceil(2) * stride];
        // SAFETY: AVX2 was detected.
        unsafe { pack::<BYTES>(&Matrix::new(&bytes, View::whole(count, row), size), &mut panel, stride) };
        for (w, lanes) in panel.iter().step_by(stride).enumerate() {
            for (r, pair) in lanes.0.iter().enumerate() {
                let element = |i: usize| match (r < count && i < row, size) {
                    (false, _) => 0,
                    (true, 1) => i16::from(bytes[r * row + i] as i8),
                    (true, _) => i16::from_le_bytes([bytes[2 * (r * row + i)], bytes[2 * (r * row + i) + 1]]),
                };
                let due = i32::from(element(2 * w + 1)) << 16 | i32::from(element(2 * w) as u16);
                assert_eq!(*pair, due, "{count} rows of {row}: pair {w} of row {r}");
            }
        }
    }

    #[test]
    fn interleaves_rows_of_any_length() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        for (count, row, stride) in [(16, 32, 1), (16, 64, 3), (1, 1, 1), (5, 33, 2), (9, 127, 1), (3, 6, 1)] {
            interleaves::<16>(count, row, stride);
            interleaves::<32>(count, row, stride);
        }
    }
}
