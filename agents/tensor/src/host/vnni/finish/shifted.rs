//! Products of shifted rows, with a scale for each column.

use std::arch::x86_64::{__m512i, _mm512_mul_epi32, _mm512_mullo_epi64, _mm512_setzero_si512, _mm512_srli_epi64};
use std::borrow::Cow;

use super::super::super::block::Precision;
use super::super::super::block::{Accumulator, Element, rescale};
use super::super::super::shifts::of_row;
use super::super::lanes::LANES;
use super::round::{join, join_scaled, round, round_products, rounds, widen};
use super::scales::{narrow, panel};
use super::{Finish, spill, write, write_lanes};
use crate::slice::Slice;

/// `rescale(c[n]·Σ, shift − s[m])`: rule N-51.
pub(crate) struct Shifted<'a> {
    /// How each row is rounded.
    rows: Vec<Precision>,
    columns: Columns<'a>,
    /// Whether it is computed in registers.
    rounds: bool,
}

/// A scale for each column.
enum Columns<'a> {
    Narrow(Cow<'a, [i32]>),
    Wide(Vec<i64>),
}

impl<'a> Shifted<'a> {
    pub(crate) fn new(s: Slice<'_>, c: Slice<'a>, to: Precision) -> Self {
        let row = |m| Precision { shift: to.shift - of_row(s, m), limit: to.limit };
        let rows = (0..s.len()).map(row).collect();
        let columns = narrow(c).map_or_else(|| Columns::Wide(c.to_wide()), Columns::Narrow);
        let rounds = rounds(to) && matches!(columns, Columns::Narrow(_));
        Self { rows, columns, rounds }
    }

    fn column(&self, n: usize) -> i64 {
        match &self.columns {
            Columns::Narrow(c) => c.get(n).copied().map_or(0, i64::from),
            Columns::Wide(c) => c.get(n).copied().unwrap_or(0),
        }
    }

    /// Scales of a panel, where they have 32 bits.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn scales(&self, first: usize) -> __m512i {
        match &self.columns {
            Columns::Narrow(c) => panel(c, first),
            Columns::Wide(_) => _mm512_setzero_si512(),
        }
    }
}

impl Finish for Shifted<'_> {
    fn narrow(&self, bound: u128) -> bool {
        bound < 1 << 31
    }

    #[inline(always)]
    fn finish<A: Accumulator, T: Element>(&self, (row, first): (usize, usize), sums: &mut [A; LANES], out: &mut [T]) {
        let Precision { shift, limit } = self.rows[row];
        let mut scaled: [i64; LANES] = std::array::from_fn(|i| self.column(first + i) * sums[i].wide());
        rescale(&mut scaled, shift, limit);
        write(&scaled, out);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    unsafe fn finish_narrow<T: Element>(&self, (row, first): (usize, usize), sums: __m512i, out: &mut [T]) {
        if !self.rounds {
            return self.finish_apart((row, first), &mut spill(widen(sums)), out);
        }
        let (to, scales) = (self.rows[row], self.scales(first));
        let even = _mm512_mul_epi32(scales, sums);
        let odd = _mm512_mul_epi32(_mm512_srli_epi64::<32>(scales), _mm512_srli_epi64::<32>(sums));
        write_lanes(round_products([even, odd], to), out);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    unsafe fn finish_wide<T: Element>(&self, (row, first): (usize, usize), mut sums: [__m512i; 2], out: &mut [T]) {
        if !self.rounds {
            return self.finish_apart((row, first), &mut spill(sums), out);
        }
        for (sums, scales) in sums.iter_mut().zip(widen(self.scales(first))) {
            *sums = _mm512_mullo_epi64(scales, *sums);
        }
        write_lanes(round(sums, self.rows[row]), out);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    unsafe fn finish_joined<T: Element>(&self, (row, first): (usize, usize), [high, low]: [__m512i; 2], out: &mut [T]) {
        if !self.rounds {
            // SAFETY: the caller vouches for AVX-512.
            return unsafe { self.finish_wide((row, first), join([high, low]), out) };
        }
        let (to, scales) = (self.rows[row], self.scales(first));
        let even = join_scaled(scales, [high, low]);
        let odd = [_mm512_srli_epi64::<32>(high), _mm512_srli_epi64::<32>(low)];
        let odd = join_scaled(_mm512_srli_epi64::<32>(scales), odd);
        write_lanes(round_products([even, odd], to), out);
    }
}
