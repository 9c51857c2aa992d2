//! Products of words by bytes, by the words' halves.
//!
//! With `a + 2^15 = 256·high + low`, both without sign, `Σa·b = 256·(Σhigh·b − 128·Σb) + Σlow·b`: two `vpdpbusd`
//! for each vector of `b`, as it lies in memory, and the sums of `b`'s rows. No lane overflows: 4096 products of a byte
//! without sign by one with a sign stay below 2^27.

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_dpbusd_epi32, _mm512_or_si512, _mm512_set1_epi8, _mm512_set1_epi32,
    _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_slli_epi32, _mm512_srli_epi32, _mm512_sub_epi32,
    _mm512_xor_si512,
};

use super::super::block::Element;
use super::finish::Finish;
use super::matrix::Matrix;
use super::pack::{LANES, Lanes, WORD, pack};
use super::product::{NR, PACKED_ROWS, STREAMS, ahead};
use super::tile::{Dot, dots, load, save, sums_of, tile};

/// Rows of a tile, each with two sums.
const MR: usize = 4;

/// Bytes without a sign by bytes with one.
struct Unsigned;

impl Dot for Unsigned {
    const FLIP: i32 = 0;
    const BYTES: usize = 1;

    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn dot(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        _mm512_dpbusd_epi32(sum, a, b)
    }
}

/// A product of words by bytes to compute, or a part of one.
pub(super) struct Halves<'a> {
    /// Of words.
    pub(super) a: Matrix<'a>,
    /// Of bytes.
    pub(super) b: Matrix<'a>,
    /// Row and column of the whole product at which this part begins.
    pub(super) origin: (usize, usize),
    /// Whether sums fit 32 bits and may come in them.
    pub(super) narrow: bool,
}

impl Halves<'_> {
    /// Computes into rows of `out` that are `stride` apart.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    pub(super) fn run<T: Element>(&self, finish: &impl Finish, out: &mut [T], stride: usize) {
        let (m, n) = (self.a.rows, self.b.rows);
        assert!(self.a.width == 2 * self.b.width, "rows of one length");
        assert!(m == 0 || (m - 1) * stride + n <= out.len(), "m × n elements");
        if m < PACKED_ROWS {
            self.stream(finish, out, stride);
            return;
        }
        let packed = self.pack_a();
        let mut b = vec![Lanes::ZERO; self.b.width.div_ceil(WORD) * NR];
        let mut first = 0;
        while first < n {
            match (n - first).div_ceil(LANES) {
                1 => self.columns::<1, T>(&packed, &mut b, &mut first, finish, (&mut *out, stride)),
                2 | 4 => self.columns::<2, T>(&packed, &mut b, &mut first, finish, (&mut *out, stride)),
                _ => self.columns::<NR, T>(&packed, &mut b, &mut first, finish, (&mut *out, stride)),
            }
        }
    }

    /// `a` in panels: of four elements of 16 rows the high halves, then the low.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn pack_a(&self) -> Vec<Lanes> {
        let (words, groups) = (self.a.width.div_ceil(WORD), self.b.width.div_ceil(WORD));
        let mut panels = vec![Lanes::ZERO; self.a.rows.div_ceil(LANES) * 2 * groups];
        for (i, panel) in panels.chunks_exact_mut(2 * groups).enumerate() {
            pack(&self.a.part(i * LANES, LANES), 0, &mut panel[..words], 1);
            halve(panel);
        }
        panels
    }

    /// Packs `NR` panels of columns and computes their tiles, from column `first` on, which becomes that after them.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn columns<const NR: usize, T: Element>(
        &self,
        a: &[Lanes],
        b: &mut [Lanes],
        first: &mut usize,
        finish: &impl Finish,
        (out, stride): (&mut [T], usize),
    ) {
        let words = self.b.width.div_ceil(WORD);
        let b = &mut b[..words * NR];
        for i in 0..NR {
            pack(&self.b.part(*first + i * LANES, LANES), 0, &mut b[i..], NR);
        }
        let bias = high_bias::<NR>(b);
        let width = (NR * LANES).min(self.b.rows - *first);
        for row in (0..self.a.rows).step_by(MR) {
            let panel = &a[row / LANES * 2 * words..][..2 * words];
            let [high, low] = tile::<Unsigned, 2, MR, NR>(panel, row % LANES, b);
            for i in 0..MR.min(self.a.rows - row) {
                let out = out[(row + i) * stride + *first..][..width].chunks_mut(LANES);
                for (panel, out) in out.enumerate() {
                    let place = (row + i, *first + panel * LANES);
                    self.finish(place, [_mm512_sub_epi32(high[i][panel], bias[panel]), low[i][panel]], finish, out);
                }
            }
        }
        *first += NR * LANES;
    }

    /// Reads `b` once, a few rows side by side, against every row of `a`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn stream<T: Element>(&self, finish: &impl Finish, out: &mut [T], stride: usize) {
        let halves: Vec<[Vec<u8>; 2]> = (0..self.a.rows).map(|row| halves_of(self.a.row(row))).collect();
        let ones = vec![1u8; self.b.width];
        let mut lanes = [[_mm512_setzero_si512(); LANES]; 3];
        for first in (0..self.b.rows).step_by(LANES) {
            for (row, [high, low]) in halves.iter().enumerate() {
                // What the first row finds out about `b`, the others know.
                if row == 0 {
                    self.dots([high, low, &ones], first, &mut lanes);
                } else {
                    self.dots([high, low], first, &mut lanes);
                }
                let [high, low, bias] = &mut lanes;
                for (high, bias) in high.iter_mut().zip(bias) {
                    *high = _mm512_sub_epi32(*high, _mm512_slli_epi32::<7>(*bias));
                }
                let out = &mut out[row * stride + first..][..LANES.min(self.b.rows - first)];
                self.finish((row, first), [sums_of(high), sums_of(low)], finish, out);
            }
        }
    }

    /// Products of rows of bytes without sign with sixteen rows of `b`, in sixteen parts each.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    #[inline]
    fn dots<const S: usize>(&self, a: [&[u8]; S], first: usize, lanes: &mut [[__m512i; LANES]; 3]) {
        let columns = LANES.min(self.b.rows - first);
        for stream in (0..columns).step_by(STREAMS) {
            // The last columns repeat one, so that there are as many as everywhere.
            let row = |j: usize| self.b.row(first + (stream + j).min(columns - 1));
            let parts = dots::<Unsigned, S, STREAMS>(a, std::array::from_fn(row), ahead(&self.b));
            for (lanes, part) in lanes.iter_mut().zip(&parts) {
                lanes[stream..stream + STREAMS].copy_from_slice(part);
            }
        }
    }

    /// Finishes sums `256·high + low`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    fn finish<T: Element>(
        &self,
        (row, column): (usize, usize),
        halves: [__m512i; 2],
        finish: &impl Finish,
        out: &mut [T],
    ) {
        let place = (self.origin.0 + row, self.origin.1 + column);
        // SAFETY: AVX-512 is enabled for this function.
        unsafe { finish.finish_halves(place, (self.narrow, halves), out) };
    }
}

/// 128 times the sum of each column of some panels.
#[target_feature(enable = "avx512f,avx512vnni")]
#[inline]
fn high_bias<const NR: usize>(b: &[Lanes]) -> [__m512i; NR] {
    let (ones, mut sums) = (_mm512_set1_epi8(1), [_mm512_setzero_si512(); NR]);
    for word in b.as_chunks::<NR>().0 {
        for (sum, lanes) in sums.iter_mut().zip(word) {
            *sum = _mm512_dpbusd_epi32(*sum, ones, load(lanes));
        }
    }
    for sum in &mut sums {
        *sum = _mm512_slli_epi32::<7>(*sum);
    }
    sums
}

/// Two words of 16 bits of each row, and the next two, become four high halves and four low ones, in place.
#[target_feature(enable = "avx512f,avx512bw")]
fn halve(panel: &mut [Lanes]) {
    let (top, even) = (_mm512_set1_epi32(0x8000_8000u32 as i32), _mm512_set1_epi32(0x00ff_00ff));
    let odd = _mm512_set1_epi32(0xff00_ff00u32 as i32);
    // Of each word, bytes 0, 2, 1, 3.
    let mut order = [0u8; 64];
    for (place, byte) in order.iter_mut().enumerate() {
        *byte = (place % 16 / 4 * 4 + [0, 2, 1, 3][place % 4]) as u8;
    }
    let order = super::tile::vector(&order);
    for [first, second] in panel.as_chunks_mut::<2>().0 {
        let (x, y) = (_mm512_xor_si512(load(first), top), _mm512_xor_si512(load(second), top));
        let high = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32::<8>(x), even), _mm512_and_si512(y, odd));
        let low = _mm512_or_si512(_mm512_and_si512(x, even), _mm512_and_si512(_mm512_slli_epi32::<8>(y), odd));
        save(_mm512_shuffle_epi8(high, order), first);
        save(_mm512_shuffle_epi8(low, order), second);
    }
}

/// The same of a row of words: high halves, low halves.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn halves_of(row: &[u8]) -> [Vec<u8>; 2] {
    let words = row.as_chunks::<2>().0;
    let [mut highs, mut lows] = [vec![0u8; words.len()], vec![0u8; words.len()]];
    for (word, (high, low)) in words.iter().zip(highs.iter_mut().zip(&mut lows)) {
        let word = u16::from_le_bytes(*word) ^ 0x8000;
        (*high, *low) = ((word >> 8) as u8, word as u8);
    }
    [highs, lows]
}
