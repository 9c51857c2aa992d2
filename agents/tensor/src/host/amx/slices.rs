//! Words as two matrices of bytes: `word = 256·high + low`, high signed, low not.

use std::arch::x86_64::{_mm256_storeu_si256, _mm512_cvtepi16_epi8, _mm512_maskz_loadu_epi8, _mm512_srli_epi16};

use super::super::vnni::lanes::{LANES, VECTOR, first_bytes};
use super::super::vnni::matrix::{Matrix, View};

/// High bytes and low bytes of rows of words: whole blocks of 16 rows of whole vectors, filled up with zeros.
pub(super) struct Slices {
    halves: [Vec<u8>; 2],
    /// From the start of a row to the start of the next.
    pub(super) stride: usize,
}

impl Slices {
    /// Room for so many rows of so many bytes of words.
    pub(super) fn new(rows: usize, width: usize) -> Self {
        let stride = (width / 2).next_multiple_of(VECTOR);
        let room = || vec![0; rows.next_multiple_of(LANES) * stride];
        Self { halves: [room(), room()], stride }
    }

    /// Splits the words of rows, as many and as long as there is room for, or fewer; absent rows become zeros.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn fill(&mut self, rows: &Matrix<'_>) {
        assert!(rows.width.div_ceil(VECTOR) * (VECTOR / 2) <= self.stride, "rows that fit");
        let [high, low] = &mut self.halves;
        let lines = high.chunks_exact_mut(self.stride).zip(low.chunks_exact_mut(self.stride));
        for (r, (high, low)) in lines.enumerate() {
            let parts = high.as_chunks_mut::<{ VECTOR / 2 }>().0.iter_mut().zip(low.as_chunks_mut().0);
            if r >= rows.rows {
                high.fill(0);
                low.fill(0);
                continue;
            }
            for (words, (high, low)) in rows.row(r).chunks(VECTOR).zip(parts) {
                let low: &mut [u8; VECTOR / 2] = low;
                // SAFETY: the mask admits the bytes of `words`.
                let words = unsafe { _mm512_maskz_loadu_epi8(first_bytes(words.len()), words.as_ptr().cast()) };
                let above = _mm512_srli_epi16::<8>(words);
                // SAFETY: 32 words become as many bytes.
                unsafe {
                    _mm256_storeu_si256(high.as_mut_ptr().cast(), _mm512_cvtepi16_epi8(above));
                    _mm256_storeu_si256(low.as_mut_ptr().cast(), _mm512_cvtepi16_epi8(words));
                }
            }
        }
    }
    /// Halves of the rows from one on, and what follows: high, low.
    pub(super) fn from(&self, row: usize) -> [&[u8]; 2] {
        self.halves.each_ref().map(|half| &half[row * self.stride..])
    }

    /// High halves and low halves as matrices.
    pub(super) fn matrices(&self) -> [Matrix<'_>; 2] {
        let whole = |half: &Vec<u8>| View::whole(half.len() / self.stride, self.stride);
        self.halves.each_ref().map(|half| Matrix::new(half, whole(half), 1))
    }
}
