//! One product: many rows of `a` by packed tiles, a few by reading `b` in place.

use std::arch::x86_64::{
    __m512i, _mm_cvtsi64_si128, _mm512_add_epi64, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_sll_epi64, _mm512_slli_epi64, _mm512_sub_epi32, _mm512_sub_epi64,
};

use super::super::block::{Accumulator, Element};
use super::finish::{Finish, widen};
use super::lanes::{LANES, Lanes, VECTOR, WORD};
use super::matrix::Matrix;
use super::pack::{pack, split, split_row, used as used_of};
use super::share::PACKED_ROWS;
use super::tile::{Dot, STREAMS, Sums, dots, empty, sums_of, tile, wide_sums_of};

/// Most panels of columns of a tile.
pub(super) const NR: usize = 3;
/// Farthest ahead of reading it that `b` is fetched when nothing is packed, in bytes: what the first-level cache holds.
const AHEAD: usize = 1 << 15;

/// A product to compute, or a part of one.
pub(super) struct Product<'a> {
    pub(super) a: Matrix<'a>,
    pub(super) b: Matrix<'a>,
    /// Products that a 32-bit lane can hold.
    pub(super) stretch: usize,
    /// Row and column of the whole product at which this part begins.
    pub(super) origin: (usize, usize),
}

/// `a` in panels.
struct Packed {
    panels: Vec<Lanes>,
    /// Words of each panel up to where all are 0: causal probabilities end in zeros.
    used: Vec<usize>,
    /// What flipping `b` adds to each row's sums.
    bias: Vec<i64>,
}

impl Product<'_> {
    /// Computes with `a` in `S` slices, one or two, `MR` rows a tile, sums in `A`, into rows of `out` that are `stride`
    /// apart.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    pub(super) fn run<D: Dot, const S: usize, const MR: usize, A: Accumulator, T: Element>(
        &self,
        finish: &impl Finish,
        out: &mut [T],
        stride: usize,
    ) {
        let (m, n, width) = (self.a.rows, self.b.rows, self.a.width);
        assert!(self.b.width == width, "rows of one length");
        assert!(m == 0 || (m - 1) * stride + n <= out.len(), "m × n elements");
        if m < PACKED_ROWS {
            self.stream::<D, S, A, T>(finish, out, stride);
            return;
        }
        let packed = self.pack_a::<D, S>();
        let mut b = vec![Lanes::ZERO; width.div_ceil(WORD) * NR];
        let mut first = 0;
        while first < n {
            // Four panels are two and two: a tile of one waits for its sums.
            let panels = match (n - first).div_ceil(LANES) {
                panels @ 1..=2 => panels,
                4 => 2,
                _ => NR,
            };
            match panels {
                1 => self.columns::<D, S, MR, 1, A, T>(&packed, &mut b, first, finish, (&mut *out, stride)),
                2 => self.columns::<D, S, MR, 2, A, T>(&packed, &mut b, first, finish, (&mut *out, stride)),
                _ => self.columns::<D, S, MR, NR, A, T>(&packed, &mut b, first, finish, (&mut *out, stride)),
            }
            first += panels * LANES;
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn pack_a<D: Dot, const S: usize>(&self) -> Packed {
        let words = self.a.width.div_ceil(WORD);
        let mut panels = vec![Lanes::ZERO; self.a.rows.div_ceil(LANES) * words * S];
        let mut used = Vec::with_capacity(self.a.rows.div_ceil(LANES));
        for (i, panel) in panels.chunks_exact_mut(words * S).enumerate() {
            let rows = self.a.part(i * LANES, LANES);
            let rows = rows.narrow(used_of(&rows));
            // Word w of slice s is group w·S + s of lanes.
            let panel = &mut panel[..rows.width.div_ceil(WORD) * S];
            pack(&rows, 0, panel, S);
            if S == 2 {
                split(panel);
            }
            used.push(panel.len() / S);
        }
        // SAFETY: VNNI is enabled for this function.
        let bias = (0..self.a.rows).map(|row| unsafe { D::bias(self.a.row(row)) }).collect();
        Packed { panels, used, bias }
    }

    /// Packs `NR` panels of columns and computes their tiles.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn columns<D: Dot, const S: usize, const MR: usize, const NR: usize, A: Accumulator, T: Element>(
        &self,
        a: &Packed,
        b: &mut [Lanes],
        first: usize,
        finish: &impl Finish,
        (out, stride): (&mut [T], usize),
    ) {
        let words = self.a.width.div_ceil(WORD);
        let b = &mut b[..words * NR];
        for i in 0..NR {
            pack(&self.b.part(first + i * LANES, LANES), D::FLIP, &mut b[i..], NR);
        }
        let width = (NR * LANES).min(self.b.rows - first);
        let stretch = (self.stretch / (WORD / D::BYTES)).clamp(1, words);
        for (i, bias) in a.bias.chunks(MR).enumerate() {
            let row = i * MR;
            let panel = row / LANES;
            let used = a.used[panel];
            let panel = &a.panels[panel * words * S..][..used * S];
            let place = |i: usize, panel: usize| (self.origin.0 + row + i, self.origin.1 + first + panel * LANES);
            let start = |i: usize| (row + i) * stride + first;
            if used <= stretch {
                let lanes = tile::<D, S, MR, NR>(panel, row % LANES, b);
                for (i, bias) in bias.iter().enumerate() {
                    let out = out[start(i)..][..width].chunks_mut(LANES);
                    for (panel, out) in out.enumerate() {
                        let sums = std::array::from_fn(|s| lanes[s][i][panel]);
                        finish_lanes::<S, A, T>(finish, place(i, panel), sums, *bias, out);
                    }
                }
                continue;
            }
            let mut sums: Sums<A, MR, NR> = [[[A::ZERO; LANES]; NR]; MR];
            for (a, b) in panel.chunks(stretch * S).zip(b.chunks(stretch * NR)) {
                empty(&tile::<D, S, MR, NR>(a, row % LANES, b), &mut sums);
            }
            for (i, (sums, bias)) in sums.iter_mut().zip(bias).enumerate() {
                let out = out[start(i)..][..width].chunks_mut(LANES);
                for (panel, (sums, out)) in sums.iter_mut().zip(out).enumerate() {
                    Self::unbias::<D, A>(sums, *bias);
                    finish.finish(place(i, panel), sums, out);
                }
            }
        }
    }

    /// Takes off what flipping `b` added.
    #[inline(always)]
    fn unbias<D: Dot, A: Accumulator>(sums: &mut [A; LANES], bias: i64) {
        if D::FLIP != 0 {
            for sum in sums {
                *sum = *sum - A::narrow(bias);
            }
        }
    }

    /// Reads `b` once, a few rows side by side, against every row of `a`; slice `s` of it counts `256^s` times.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn stream<D: Dot, const S: usize, A: Accumulator, T: Element>(
        &self,
        finish: &impl Finish,
        out: &mut [T],
        stride: usize,
    ) {
        let (n, width, ahead) = (self.b.rows, self.a.width, ahead(&self.b));
        // A lane gets a sixteenth of the products.
        let stretch = (self.stretch.saturating_mul(LANES) / (VECTOR / D::BYTES)).max(1).saturating_mul(VECTOR);
        // Of each row its slices, in one piece of memory.
        let mut split = vec![0; if S == 2 { 2 * self.a.rows * width } else { 0 }];
        for (row, split) in split.chunks_exact_mut((2 * width).max(1)).enumerate() {
            split_row(self.a.row(row), split.split_at_mut(width).into());
        }
        // SAFETY: VNNI is enabled for this function.
        let bias: Vec<i64> = (0..self.a.rows).map(|row| unsafe { D::bias(self.a.row(row)) }).collect();
        for first in (0..n).step_by(LANES) {
            let (columns, b) = (LANES.min(n - first), self.b.sixteen(first));
            'rows: for (row, bias) in bias.iter().enumerate() {
                let mut a = [self.a.row(row); S];
                if S == 2 {
                    a.iter_mut().zip(split[2 * row * width..].chunks_exact(width.max(1))).for_each(|(a, s)| *a = s);
                }
                let out = &mut out[row * stride + first..][..columns];
                let place = (self.origin.0 + row, self.origin.1 + first);
                let mut sums = [_mm512_setzero_si512(); 2];
                for start in (0..width).step_by(stretch) {
                    let range = start..width.min(start.saturating_add(stretch));
                    let a = a.map(|a| &a[range.clone()]);
                    let mut lanes = [[_mm512_setzero_si512(); LANES]; S];
                    dots::<D, S>(a, (&b.map(|b| &b[range.clone()]), columns), ahead, &mut lanes);
                    if S == 1 && A::BITS == i32::BITS && width <= stretch {
                        let sums = [sums_of(&lanes[0])];
                        finish_lanes::<1, A, T>(finish, place, sums, *bias, out);
                        continue 'rows;
                    }
                    // So few products as a lane holds, their sum is in a lane.
                    let fit = range.len() / D::BYTES <= self.stretch;
                    for (s, lanes) in lanes.iter().enumerate() {
                        let by = _mm_cvtsi64_si128(8 * s as i64);
                        let parts = if fit { widen(sums_of(lanes)) } else { wide_sums_of(lanes) };
                        for (sums, part) in sums.iter_mut().zip(parts) {
                            *sums = _mm512_add_epi64(*sums, _mm512_sll_epi64(part, by));
                        }
                    }
                }
                let bias = _mm512_set1_epi64(*bias);
                let sums = sums.map(|sums| _mm512_sub_epi64(sums, bias));
                // SAFETY: AVX-512 is enabled for this function.
                unsafe { finish.finish_wide(place, sums, out) };
            }
        }
    }
}

/// How many bytes ahead of reading it `b` is fetched when nothing is packed: its next rows, or, where a head is a part
/// of a row, the next that are read side by side.
pub(super) const fn ahead(b: &Matrix<'_>) -> usize {
    let next = if b.stride == b.width && LANES * b.width <= AHEAD { LANES * b.width } else { STREAMS * b.stride };
    if next < AHEAD { next } else { AHEAD }
}

/// Finishes sums of one stretch, all of whose parts lie in registers; slice `s` counts `256^s` times.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
#[inline]
fn finish_lanes<const S: usize, A: Accumulator, T: Element>(
    finish: &impl Finish,
    place: (usize, usize),
    sums: [__m512i; S],
    bias: i64,
    out: &mut [T],
) {
    if S == 1 && A::BITS == i32::BITS {
        let sums = _mm512_sub_epi32(sums[0], _mm512_set1_epi32(bias as i32));
        // SAFETY: AVX-512 is enabled for this function.
        return unsafe { finish.finish_narrow(place, sums, out) };
    }
    let bias = _mm512_set1_epi64(bias);
    let mut wide = widen(sums[0]).map(|x| _mm512_sub_epi64(x, bias));
    for sums in &sums[1..] {
        for (wide, high) in wide.iter_mut().zip(widen(*sums)) {
            *wide = _mm512_add_epi64(*wide, _mm512_slli_epi64::<8>(high));
        }
    }
    // SAFETY: as above.
    unsafe { finish.finish_wide(place, wide, out) };
}
