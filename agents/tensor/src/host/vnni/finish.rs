//! What becomes of the sums of a product while they are in registers.

use std::arch::x86_64::{
    __m512i, _mm_cvtsi32_si128, _mm_cvtsi64_si128, _mm512_add_epi32, _mm512_add_epi64, _mm512_and_si512,
    _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_cvtepi32_epi64, _mm512_cvtepi64_epi32,
    _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_mask_blend_epi32,
    _mm512_mask_cvtepi32_storeu_epi8, _mm512_mask_cvtepi32_storeu_epi16, _mm512_mask_or_epi32,
    _mm512_mask_storeu_epi32, _mm512_maskz_loadu_epi32, _mm512_max_epi32, _mm512_max_epi64, _mm512_min_epi32,
    _mm512_min_epi64, _mm512_movepi32_mask, _mm512_mul_epi32, _mm512_mullo_epi32, _mm512_mullo_epi64,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_sll_epi64, _mm512_slli_epi64, _mm512_sra_epi32,
    _mm512_sra_epi64, _mm512_srai_epi32, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi32, _mm512_sub_epi64,
    _mm512_test_epi32_mask, _mm512_xor_si512,
};
use std::borrow::Cow;

use super::super::block::{Accumulator, Element, fits_i32, rescale};
use super::super::elementwise::Precision;
use super::super::shift::of_row;
use super::pack::{LANES, Lanes};
use super::tile::store;
use crate::simd::ODD;
use crate::tensor::{Slice, each_width};

/// Turns sums into mantissas of the result. Columns begin at multiples of [`LANES`].
pub(crate) trait Finish: Sync {
    /// Whether sums of at most `bound` in magnitude may come in `i32`.
    fn narrow(&self, bound: u128) -> bool;

    /// Finishes the sums of a row from a column on; as many as `out` has elements.
    fn finish<A: Accumulator, T: Element>(&self, place: (usize, usize), sums: &mut [A; LANES], out: &mut [T]);

    /// The same apart, for what is not computed in registers: the code of what is stays small.
    #[inline(never)]
    fn finish_apart<A: Accumulator, T: Element>(&self, place: (usize, usize), sums: &mut [A; LANES], out: &mut [T]) {
        self.finish(place, sums, out);
    }

    /// The same for sums of 32 bits in a register.
    ///
    /// # Safety
    /// The processor has AVX-512.
    unsafe fn finish_narrow<T: Element>(&self, place: (usize, usize), sums: __m512i, out: &mut [T]);

    /// The same for sums of 64 bits in two registers.
    ///
    /// # Safety
    /// The processor has AVX-512.
    unsafe fn finish_wide<T: Element>(&self, place: (usize, usize), sums: [__m512i; 2], out: &mut [T]);
}

/// Lanes of the first `n` of sixteen elements.
const fn first_lanes(n: usize) -> u16 {
    if n >= LANES { u16::MAX } else { (1 << n) - 1 }
}

fn write<A: Accumulator, T: Element>(from: &[A; LANES], to: &mut [T]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = T::narrow(from.wide());
    }
}

/// Narrows lanes, which fit, to as many elements as there are.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn write_lanes<T: Element>(from: __m512i, to: &mut [T]) {
    let (mask, address) = (first_lanes(to.len()), to.as_mut_ptr());
    // SAFETY: the mask admits as many elements as `to` has, of as many bytes.
    unsafe {
        match size_of::<T>() {
            1 => _mm512_mask_cvtepi32_storeu_epi8(address.cast(), mask, from),
            2 => _mm512_mask_cvtepi32_storeu_epi16(address.cast(), mask, from),
            4 => _mm512_mask_storeu_epi32(address.cast(), mask, from),
            _ => write(&store(from).0, to),
        }
    }
}

/// Sixteen sums as 64-bit integers.
#[target_feature(enable = "avx512f")]
#[inline]
pub(in crate::host) fn widen(sums: __m512i) -> [__m512i; 2] {
    let high = _mm512_extracti64x4_epi64::<1>(sums);
    [_mm512_cvtepi32_epi64(_mm512_castsi512_si256(sums)), _mm512_cvtepi32_epi64(high)]
}

/// Sums in memory.
#[target_feature(enable = "avx512f")]
#[inline]
fn spill(sums: [__m512i; 2]) -> [i64; LANES] {
    let mut memory = [0i64; LANES];
    for (memory, vector) in memory.as_chunks_mut::<{ LANES / 2 }>().0.iter_mut().zip(sums) {
        // SAFETY: eight elements are a vector.
        unsafe { _mm512_storeu_si512(memory.as_mut_ptr().cast(), vector) };
    }
    memory
}

/// Whether [`round`] computes the rescale: its results are narrowed from 32 bits.
fn rounds(to: Precision) -> bool {
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
fn round([low, high]: [__m512i; 2], to: Precision) -> __m512i {
    let low = _mm512_cvtepi64_epi32(round_eight(low, to));
    let high = _mm512_cvtepi64_epi32(round_eight(high, to));
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

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

/// Whether [`round_high`] computes the rescale of products of 32 bits each.
fn rounds_high(to: Precision) -> bool {
    (34..=62).contains(&to.shift) && to.limit <= i64::from(i32::MAX)
}

/// The same as [`round`] of products in even and in odd lanes, each below 2^62, where [`rounds_high`] holds: sixteen at
/// a time, because all that the lower 32 bits can decide is whether something is left under the half.
#[target_feature(enable = "avx512f")]
#[inline]
fn round_high([even, odd]: [__m512i; 2], to: Precision) -> __m512i {
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
fn round_low([even, odd]: [__m512i; 2], to: Precision) -> __m512i {
    let odd = _mm512_slli_epi64::<32>(round_eight(odd, to));
    _mm512_mask_blend_epi32(ODD, round_eight(even, to), odd)
}

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

/// Scales in 32 bits, if they fit.
fn narrow(scales: Slice<'_>) -> Option<Cow<'_, [i32]>> {
    match scales {
        Slice::I32(scales) => Some(Cow::Borrowed(scales)),
        scales => {
            let fit = each_width!(Slice, scales, v => v.iter().map(|x| i32::try_from(x.wide()).ok()).collect());
            Option::<Vec<i32>>::map(fit, Cow::Owned)
        }
    }
}

/// The largest magnitude.
fn largest(scales: &[i32]) -> u64 {
    scales.iter().fold(0, |largest, scale| largest.max(scale.unsigned_abs())).into()
}

/// Scales of the columns of a panel; zeros beyond the last.
#[target_feature(enable = "avx512f")]
#[inline]
fn panel(c: &[i32], first: usize) -> __m512i {
    let c = &c[first..];
    // SAFETY: the mask admits as many elements as there are.
    unsafe { _mm512_maskz_loadu_epi32(first_lanes(c.len()), c.as_ptr()) }
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
        let lanes = if rounds_high(to) { round_high([even, odd], to) } else { round_low([even, odd], to) };
        write_lanes(lanes, out);
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
