//! Products with a scale for each row and one for each column.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_and_si512, _mm512_loadu_si512, _mm512_mask_blend_epi32, _mm512_maskz_loadu_epi32,
    _mm512_max_epi32, _mm512_min_epi32, _mm512_movepi32_mask, _mm512_mul_epi32, _mm512_mullo_epi32, _mm512_mullo_epi64,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_srai_epi32, _mm512_srli_epi64, _mm512_sub_epi32,
    _mm512_xor_si512,
};
use std::borrow::Cow;

use super::super::super::block::Precision;
use super::super::super::block::{Accumulator, Element, rescale};
use super::super::lanes::{LANES, store};
use super::round::{round, round_high, round_low, rounds, rounds_high, widen};
use super::scales::{largest, narrow, panel};
use super::{Finish, first_lanes, spill, write, write_lanes};
use crate::slice::Slice;

/// `rescale(r[m]·c[n]·Σ)`: rule N-25.
pub(crate) struct Scaled<'a> {
    scales: Scales<'a>,
    to: Precision,
    /// Whether it is computed in registers, and whether by [`round_high`] where sums are narrow.
    rounds: (bool, bool),
}

/// A scale for each row, and one for each column.
enum Scales<'a> {
    /// Where they lie, and whether the product of any two fits 32 bits.
    Narrow(Cow<'a, [i32]>, Cow<'a, [i32]>, bool),
    /// Columns in halves of whole panels.
    Wide(Vec<i64>, Vec<[[i64; LANES / 2]; 2]>),
}

impl<'a> Scaled<'a> {
    pub(crate) fn new(r: Slice<'a>, c: Slice<'a>, to: Precision) -> Self {
        let rounds = (rounds(to), rounds_high(to));
        if let (Some(r), Some(c)) = (narrow(r), narrow(c)) {
            let small = largest(&r).max(1) * largest(&c).max(1) < 1 << 31;
            return Self { scales: Scales::Narrow(r, c, small), to, rounds };
        }
        let half = |part: &[i64], i: usize| std::array::from_fn(|j| part.get(i * LANES / 2 + j).copied().unwrap_or(0));
        let c = c.to_wide().chunks(LANES).map(|part| [half(part, 0), half(part, 1)]).collect();
        Self { scales: Scales::Wide(r.to_wide(), c), to, rounds }
    }

    /// Products of the scales of a row and of the columns of a panel.
    fn products(&self, (row, first): (usize, usize)) -> [i64; LANES] {
        match &self.scales {
            Scales::Narrow(r, c, _) => {
                std::array::from_fn(|i| i64::from(r[row]) * c.get(first + i).copied().map_or(0, i64::from))
            }
            Scales::Wide(r, c) => {
                let c = c[first / LANES].as_flattened();
                std::array::from_fn(|i| r[row] * c[i])
            }
        }
    }
}

impl Scaled<'_> {
    /// Results of sums of 32 bits, in 32 bits, where they are computed in registers.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn lanes_narrow(&self, (row, first): (usize, usize), sums: __m512i) -> __m512i {
        let Scales::Narrow(r, c, true) = &self.scales else { return self.lanes_wide((row, first), widen(sums)) };
        let scales = _mm512_mullo_epi32(_mm512_set1_epi32(r[row]), panel(c, first));
        let even = _mm512_mul_epi32(scales, sums);
        let odd = _mm512_mul_epi32(_mm512_srli_epi64::<32>(scales), _mm512_srli_epi64::<32>(sums));
        if self.rounds.1 { round_high([even, odd], self.to) } else { round_low([even, odd], self.to) }
    }

    /// The same of sums of 64 bits.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline(never)]
    fn lanes_wide(&self, (row, first): (usize, usize), mut sums: [__m512i; 2]) -> __m512i {
        let scales = match &self.scales {
            Scales::Narrow(r, c, _) => {
                widen(panel(c, first)).map(|c| _mm512_mul_epi32(c, _mm512_set1_epi64(r[row].into())))
            }
            Scales::Wide(r, c) => c[first / LANES].each_ref().map(|c| {
                // SAFETY: eight elements are a vector.
                let c = unsafe { _mm512_loadu_si512(c.as_ptr().cast()) };
                _mm512_mullo_epi64(c, _mm512_set1_epi64(r[row]))
            }),
        };
        for (sums, scales) in sums.iter_mut().zip(scales) {
            *sums = _mm512_mullo_epi64(scales, *sums);
        }
        round(sums, self.to)
    }
}

impl Finish for Scaled<'_> {
    fn narrow(&self, bound: u128) -> bool {
        bound < 1 << 31
    }

    #[inline(always)]
    fn finish<A: Accumulator, T: Element>(&self, place: (usize, usize), sums: &mut [A; LANES], out: &mut [T]) {
        let mut scaled = self.products(place);
        for (scaled, sum) in scaled.iter_mut().zip(sums) {
            *scaled *= sum.wide();
        }
        rescale(&mut scaled, self.to.shift, self.to.limit);
        write(&scaled, out);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    unsafe fn finish_narrow<T: Element>(&self, place: (usize, usize), sums: __m512i, out: &mut [T]) {
        if self.rounds.0 {
            write_lanes(self.lanes_narrow(place, sums), out);
        } else {
            self.finish_apart(place, &mut spill(widen(sums)), out);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    unsafe fn finish_wide<T: Element>(&self, place: (usize, usize), sums: [__m512i; 2], out: &mut [T]) {
        if self.rounds.0 {
            write_lanes(self.lanes_wide(place, sums), out);
        } else {
            self.finish_apart(place, &mut spill(sums), out);
        }
    }
}

/// Scaled sums added to what is there, and clamped to the same limit: rule N-25, and N-13 after it.
pub(crate) struct Added<'a>(pub(crate) Scaled<'a>);

impl Added<'_> {
    /// Adds lanes to as many elements as there are.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    fn add<T: Element>(&self, lanes: __m512i, out: &mut [T]) {
        if size_of::<T>() != size_of::<i32>() {
            return self.add_elements(&store(lanes).0, out);
        }
        // SAFETY: the mask admits as many elements as `out` has, of as many bytes.
        let there = unsafe { _mm512_maskz_loadu_epi32(first_lanes(out.len()), out.as_ptr().cast()) };
        let sum = _mm512_add_epi32(there, lanes);
        // A sum of another sign than both its terms is beyond 32 bits, and the limit.
        let beyond = _mm512_movepi32_mask(_mm512_and_si512(_mm512_xor_si512(there, sum), _mm512_xor_si512(lanes, sum)));
        let limit = _mm512_set1_epi32(self.0.to.limit as i32);
        let end = _mm512_xor_si512(_mm512_srai_epi32::<31>(there), limit);
        let sum = _mm512_mask_blend_epi32(beyond, sum, end);
        let above = _mm512_max_epi32(sum, _mm512_sub_epi32(_mm512_setzero_si512(), limit));
        write_lanes(_mm512_min_epi32(above, limit), out);
    }

    #[inline(always)]
    fn add_elements<A: Accumulator, T: Element>(&self, part: &[A; LANES], out: &mut [T]) {
        let limit = self.0.to.limit;
        for (out, part) in out.iter_mut().zip(part) {
            *out = T::narrow(out.wide().saturating_add(part.wide()).clamp(-limit, limit));
        }
    }
}

impl Finish for Added<'_> {
    fn narrow(&self, bound: u128) -> bool {
        self.0.narrow(bound)
    }

    #[inline(always)]
    fn finish<A: Accumulator, T: Element>(&self, place: (usize, usize), sums: &mut [A; LANES], out: &mut [T]) {
        let mut part = [0i64; LANES];
        self.0.finish(place, sums, &mut part);
        self.add_elements(&part, out);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    unsafe fn finish_narrow<T: Element>(&self, place: (usize, usize), sums: __m512i, out: &mut [T]) {
        if self.0.rounds.0 {
            self.add(self.0.lanes_narrow(place, sums), out);
        } else {
            self.finish_apart(place, &mut spill(widen(sums)), out);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    unsafe fn finish_wide<T: Element>(&self, place: (usize, usize), sums: [__m512i; 2], out: &mut [T]) {
        if self.0.rounds.0 {
            self.add(self.0.lanes_wide(place, sums), out);
        } else {
            self.finish_apart(place, &mut spill(sums), out);
        }
    }
}
