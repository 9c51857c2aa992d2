//! Panels: 16 rows of a matrix interleaved word by word, so that one vector holds the same 4 bytes of the dot product
//! for 16 rows.

use std::arch::x86_64::{
    __m512i, _MM_HINT_T0, _mm_prefetch, _mm512_add_epi16, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_or_si512, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_shuffle_i32x4,
    _mm512_slli_epi16, _mm512_srai_epi16, _mm512_srli_epi16, _mm512_storeu_si512, _mm512_test_epi32_mask,
    _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64, _mm512_xor_si512,
};

use super::lanes::{LANES, Lanes, VECTOR, WORD, first_bytes};
use super::matrix::Matrix;

/// Bytes of the rows up to the last vector that is not 0 in each of them.
#[target_feature(enable = "avx512f,avx512bw")]
pub(in crate::host) fn used(rows: &Matrix<'_>) -> usize {
    for start in (0..rows.width).step_by(VECTOR).rev() {
        let end = rows.width.min(start + VECTOR);
        let mut any = _mm512_setzero_si512();
        for r in 0..rows.rows {
            let part = &rows.row(r)[start..end];
            // SAFETY: the mask admits the bytes of `part`.
            let part = unsafe { _mm512_maskz_loadu_epi8(first_bytes(part.len()), part.as_ptr().cast()) };
            any = _mm512_or_si512(any, part);
        }
        if _mm512_test_epi32_mask(any, any) != 0 {
            return end;
        }
    }
    0
}

/// Interleaves `rows` (at most 16; absent ones count as zeros), every word xored with `flip`. Word `w` of row `r` goes
/// to `panel[w · stride].0[r]`; words past the end of a row are zeros, xored too.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::host) fn pack(rows: &Matrix<'_>, flip: i32, panel: &mut [Lanes], stride: usize) {
    let words = rows.width.div_ceil(WORD);
    assert!(rows.rows <= LANES, "at most 16 rows");
    assert!(panel.len().div_ceil(stride) == words, "the panel holds every word");
    let flip = _mm512_set1_epi32(flip);
    for start in (0..rows.width).step_by(VECTOR) {
        let bytes = VECTOR.min(rows.width - start);
        let mut square = [_mm512_setzero_si512(); LANES];
        for (r, vector) in square.iter_mut().enumerate().take(rows.rows) {
            let part = &rows.row(r)[start..start + bytes];
            // The same part of the next 16 rows; prefetching is no access, where there are none.
            _mm_prefetch::<_MM_HINT_T0>(part.as_ptr().wrapping_add(LANES * rows.stride).cast());
            // SAFETY: the mask admits `bytes` bytes, the length of `part`.
            *vector = unsafe { _mm512_maskz_loadu_epi8(first_bytes(bytes), part.as_ptr().cast()) };
        }
        let square = transpose(square);
        let words = panel[start / WORD * stride..].iter_mut().step_by(stride);
        for (lanes, vector) in words.zip(square) {
            // SAFETY: `Lanes` has the size of a vector.
            unsafe { _mm512_storeu_si512((&raw mut *lanes).cast(), _mm512_xor_si512(vector, flip)) };
        }
    }
}

/// `word = 256·high + low` for each 16-bit word, both at most 128 in magnitude: `(low, high)`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn slices(words: __m512i) -> [__m512i; 2] {
    let low = _mm512_srai_epi16::<8>(_mm512_slli_epi16::<8>(words));
    // A low byte of 128 and more counts as negative, and one more of the high.
    let carry = _mm512_srli_epi16::<15>(_mm512_slli_epi16::<8>(words));
    [low, _mm512_add_epi16(_mm512_srai_epi16::<8>(words), carry)]
}

/// Splits the words of a panel into slices: group `w` of lanes at `2·w` becomes low bytes there and high bytes
/// at `2·w + 1`.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn split(panel: &mut [Lanes]) {
    for [low, high] in panel.as_chunks_mut::<2>().0 {
        // SAFETY: `Lanes` has the size of a vector.
        let [l, h] = slices(unsafe { _mm512_loadu_si512((&raw const *low).cast()) });
        // SAFETY: as above.
        unsafe {
            _mm512_storeu_si512((&raw mut *low).cast(), l);
            _mm512_storeu_si512((&raw mut *high).cast(), h);
        }
    }
}

/// The same for a row of words, into its low bytes and its high bytes.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn split_row(row: &[u8], split: [&mut [u8]; 2]) {
    assert!(split.iter().all(|split| split.len() == row.len()), "as many bytes of each slice");
    let [low, high] = split.map(<[u8]>::as_mut_ptr);
    for (at, words) in (0..).step_by(VECTOR).zip(row.chunks(VECTOR)) {
        let mask = first_bytes(words.len());
        // SAFETY: the mask admits the bytes of `words`, and so many in rows as long.
        unsafe {
            let [l, h] = slices(_mm512_maskz_loadu_epi8(mask, words.as_ptr().cast()));
            _mm512_mask_storeu_epi8(low.add(at).cast(), mask, l);
            _mm512_mask_storeu_epi8(high.add(at).cast(), mask, h);
        }
    }
}

/// Transposes 16 × 16 words.
#[target_feature(enable = "avx512f")]
#[inline]
pub(in crate::host) fn transpose(r: [__m512i; LANES]) -> [__m512i; LANES] {
    // Words of row pairs, then pairs of those: `u[4i + j]` holds, in quarter l, column 4l + j of rows 4i..4i+4.
    let mut t = r;
    for i in 0..8 {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    let mut u = t;
    for i in (0..LANES).step_by(4) {
        u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    // Quarters of the four row groups, gathered by column.
    let mut columns = u;
    for j in 0..4 {
        let even = (_mm512_shuffle_i32x4::<0x88>(u[j], u[4 + j]), _mm512_shuffle_i32x4::<0x88>(u[8 + j], u[12 + j]));
        let odd = (_mm512_shuffle_i32x4::<0xdd>(u[j], u[4 + j]), _mm512_shuffle_i32x4::<0xdd>(u[8 + j], u[12 + j]));
        columns[j] = _mm512_shuffle_i32x4::<0x88>(even.0, even.1);
        columns[8 + j] = _mm512_shuffle_i32x4::<0xdd>(even.0, even.1);
        columns[4 + j] = _mm512_shuffle_i32x4::<0x88>(odd.0, odd.1);
        columns[12 + j] = _mm512_shuffle_i32x4::<0xdd>(odd.0, odd.1);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::super::matrix::View;
    use super::*;

    #[test]
    fn interleaves_rows_of_any_length() {
        if !is_x86_feature_detected!("avx512bw") || !is_x86_feature_detected!("avx512vl") {
            return;
        }
        for (count, row_bytes, stride) in
            [(16, 64usize, 1), (16, 128, 3), (1, 1, 1), (5, 67, 2), (16, 255, 1), (3, 6, 1)]
        {
            let rows: Vec<u8> = (0..count * row_bytes).map(|i| (i * 7 + i / 251) as u8).collect();
            let words = row_bytes.div_ceil(WORD);
            let mut panel = vec![Lanes::ZERO; words * stride];
            let matrix = Matrix::new(&rows, View::whole(count, row_bytes), 1);
            // SAFETY: the features were just detected.
            unsafe { pack(&matrix, 0x0101_0101, &mut panel, stride) };
            for w in 0..words {
                for r in 0..LANES {
                    let byte = |i: usize| {
                        let inside = r < count && WORD * w + i < row_bytes;
                        1 ^ if inside { rows[r * row_bytes + WORD * w + i] } else { 0 }
                    };
                    let due = i32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)]);
                    assert_eq!(panel[w * stride].0[r], due, "{count} rows of {row_bytes}: word {w} of row {r}");
                }
            }
        }
    }
}
