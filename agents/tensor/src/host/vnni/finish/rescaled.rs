//! Products without scales.

use std::arch::x86_64::{
    __m512i, _mm_cvtsi32_si128, _mm512_add_epi32, _mm512_and_si512, _mm512_max_epi32, _mm512_min_epi32,
    _mm512_set1_epi32, _mm512_sra_epi32,
};

use super::super::super::block::Precision;
use super::super::super::block::{Accumulator, Element, fits_i32, rescale};
use super::super::lanes::{LANES, Lanes, store};
use super::round::{round, rounds};
use super::{Finish, spill, write, write_lanes};

/// `rescale(Σ)`: rules N-11, N-26 and N-27.
pub(crate) struct Rescaled(pub(crate) Precision);

impl Finish for Rescaled {
    fn narrow(&self, bound: u128) -> bool {
        fits_i32(bound, self.0.limit)
    }

    #[inline(always)]
    fn finish<A: Accumulator, T: Element>(&self, _: (usize, usize), sums: &mut [A; LANES], out: &mut [T]) {
        rescale(sums, self.0.shift, self.0.limit);
        write(sums, out);
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    unsafe fn finish_narrow<T: Element>(&self, place: (usize, usize), sums: __m512i, out: &mut [T]) {
        let Precision { shift, limit } = self.0;
        if !(1..i32::BITS as i32).contains(&shift) {
            let Lanes(mut sums) = store(sums);
            return self.finish_apart(place, &mut sums, out);
        }
        // As `round` does; the limit fits, where sums are narrow.
        let (by, limit) = (_mm_cvtsi32_si128(shift), limit as i32);
        let odd = _mm512_and_si512(_mm512_sra_epi32(sums, by), _mm512_set1_epi32(1));
        let raised = _mm512_add_epi32(_mm512_add_epi32(sums, _mm512_set1_epi32((1 << (shift - 1)) - 1)), odd);
        let above = _mm512_max_epi32(_mm512_sra_epi32(raised, by), _mm512_set1_epi32(-limit));
        write_lanes(_mm512_min_epi32(above, _mm512_set1_epi32(limit)), out);
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    unsafe fn finish_wide<T: Element>(&self, place: (usize, usize), sums: [__m512i; 2], out: &mut [T]) {
        if rounds(self.0) {
            write_lanes(round(sums, self.0), out);
        } else {
            self.finish_apart(place, &mut spill(sums), out);
        }
    }
}
