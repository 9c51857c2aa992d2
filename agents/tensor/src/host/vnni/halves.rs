//! Products of words by bytes, by the words' halves.
//!
//! `a = 256·high + low`, where only the high half has a sign, and each product is one `vpdpbusd` for a vector of `b`.
//! That multiplies bytes without sign by bytes with one, so of the high half's product an operand is lifted by 128:
//!
//! - many rows of `a` are lifted when they are packed, `Σhigh·b = Σ(high + 128)·b − 128·Σb`: the sums of `b`'s rows
//!   are few products among many;
//! - a few rows read `b` once, and `b` is lifted on the way, `Σhigh·b = Σhigh·(b + 128) − 128·Σhigh`: the sums of
//!   `a`'s rows are known beforehand.
//!
//! No lane overflows: 4096 products of a byte without sign by one with a sign stay below 2^27.

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_dpbusd_epi32, _mm512_or_si512, _mm512_set1_epi8, _mm512_set1_epi32,
    _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_slli_epi32, _mm512_srli_epi32, _mm512_sub_epi32,
    _mm512_xor_si512,
};

use super::super::block::Element;
use super::finish::Finish;
use super::lanes::{LANES, Lanes, WORD, load, save, vector};
use super::matrix::Matrix;
use super::pack::pack;
use super::product::{NR, ahead};
use super::share::PACKED_ROWS;
use super::tile::{Bytes, Dot, Slices, dots, sums_of, tile};

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

/// A row's high halves by bytes that are lifted, and its low halves by bytes as they are.
struct HighAndLow;

impl Slices<2> for HighAndLow {
    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn add([highs, lows]: [__m512i; 2], [high, low]: [__m512i; 2], b: __m512i) -> [__m512i; 2] {
        let lifted = _mm512_xor_si512(b, _mm512_set1_epi8(i8::MIN));
        [_mm512_dpbusd_epi32(highs, lifted, high), _mm512_dpbusd_epi32(lows, low, b)]
    }
}

/// Rows of `a`.
struct Rows {
    /// Of each row the high halves, which have a sign, then the low.
    halves: Vec<u8>,
    /// What lifting `b` adds to the sums of each row's high halves.
    biases: Vec<i32>,
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
        let Rows { halves, biases } = Rows::new(&self.a);
        let (width, ahead) = (self.b.width, ahead(&self.b));
        let mut lanes = [[_mm512_setzero_si512(); LANES]; 2];
        for first in (0..self.b.rows).step_by(LANES) {
            let (columns, b) = (LANES.min(self.b.rows - first), self.b.sixteen(first));
            for (i, bias) in biases.iter().enumerate() {
                let (high, low) = halves[2 * i * width..][..2 * width].split_at(width);
                dots::<HighAndLow, 2>([high, low], (&b, columns), ahead, &mut lanes);
                let [high, low] = &lanes;
                let high = _mm512_sub_epi32(sums_of(high), _mm512_set1_epi32(*bias));
                self.finish((i, first), [high, sums_of(low)], finish, &mut out[i * stride + first..][..columns]);
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

impl Rows {
    /// Of words.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    fn new(a: &Matrix<'_>) -> Self {
        let mut halves = vec![0; a.rows * a.width];
        let mut biases = vec![0; a.rows];
        for (row, (halves, bias)) in halves.chunks_exact_mut(a.width.max(1)).zip(&mut biases).enumerate() {
            let (high, low) = halves.split_at_mut(a.width / 2);
            let words = a.row(row).as_chunks::<2>().0;
            for (word, (high, low)) in words.iter().zip(high.iter_mut().zip(low)) {
                [*low, *high] = *word;
            }
            // SAFETY: VNNI is enabled for this function.
            *bias = unsafe { Bytes::bias(high) } as i32;
        }
        Self { halves, biases }
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
    let order = vector(&order);
    for [first, second] in panel.as_chunks_mut::<2>().0 {
        let (x, y) = (_mm512_xor_si512(load(first), top), _mm512_xor_si512(load(second), top));
        let high = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32::<8>(x), even), _mm512_and_si512(y, odd));
        let low = _mm512_or_si512(_mm512_and_si512(x, even), _mm512_and_si512(_mm512_slli_epi32::<8>(y), odd));
        save(_mm512_shuffle_epi8(high, order), first);
        save(_mm512_shuffle_epi8(low, order), second);
    }
}
