//! One product: many rows of `a` by packed tiles, a few by reading `b` in place.

use std::arch::x86_64::__m256i;

use super::super::block::Accumulator;
use super::super::vnni::lanes::{LANES, Lanes};
use super::super::vnni::matrix::Matrix;
use super::super::vnni::share::PACKED_ROWS;
use super::pack::{ELEMENTS, pack, slices, some_words, split};
use super::tile::{STREAMS, dots, empty, sums_of, tile, wide_sum_of};

/// What becomes of the sums of a row, from a column on.
pub(super) type Take<'t, A> = &'t mut dyn FnMut((usize, usize), &mut [A; LANES]);

/// A product to compute, or a part of one.
pub(super) struct Product<'a> {
    pub(super) a: Matrix<'a>,
    pub(super) b: Matrix<'a>,
    /// Bytes of an element of `a`, and of `b`.
    pub(super) bytes: (usize, usize),
    /// Products that a lane holds.
    pub(super) stretch: usize,
}

impl Product<'_> {
    /// Computes with `a` in `S` slices, one or two, `MR` rows a tile, sums in `A`.
    #[target_feature(enable = "avx2")]
    pub(super) fn run<const S: usize, const MR: usize, A: Accumulator>(&self, take: Take<'_, A>) {
        assert!(self.a.width * self.bytes.1 == self.b.width * self.bytes.0, "rows of one length");
        match (self.a.rows < PACKED_ROWS, self.bytes.1) {
            (true, 1) => self.stream::<ELEMENTS, S, A>(take),
            (true, _) => self.stream::<{ 2 * ELEMENTS }, S, A>(take),
            (false, _) => self.tiles::<S, MR, A>(take),
        }
    }

    /// Elements of a dot product.
    const fn length(&self) -> usize {
        self.b.width / self.bytes.1
    }

    /// By panels of both.
    #[target_feature(enable = "avx2")]
    fn tiles<const S: usize, const MR: usize, A: Accumulator>(&self, take: Take<'_, A>) {
        let pairs = self.length().div_ceil(2);
        let panels = self.pack_a::<S>(pairs);
        let mut b = vec![Lanes::ZERO; pairs];
        let stretch = (self.stretch / 2).clamp(1, pairs.max(1));
        for first in (0..self.b.rows).step_by(LANES) {
            pack_elements(&self.b.part(first, LANES), self.bytes.1, &mut b, 1);
            for row in (0..self.a.rows).step_by(MR) {
                let a = &panels[row / LANES * pairs * S..][..pairs * S];
                let mut sums = [[A::ZERO; LANES]; MR];
                for (a, b) in a.chunks(stretch * S).zip(b.chunks(stretch)) {
                    empty(&tile::<S, MR>(a, row % LANES, b), &mut sums);
                }
                for (row, sums) in (row..self.a.rows).zip(&mut sums) {
                    take((row, first), sums);
                }
            }
        }
    }

    /// `a` in panels: pair `w` of slice `s` is group `w·S + s` of lanes.
    #[target_feature(enable = "avx2")]
    fn pack_a<const S: usize>(&self, pairs: usize) -> Vec<Lanes> {
        let mut panels = vec![Lanes::ZERO; self.a.rows.div_ceil(LANES) * pairs * S];
        for (i, panel) in panels.chunks_exact_mut((pairs * S).max(1)).enumerate() {
            pack_elements(&self.a.part(i * LANES, LANES), self.bytes.0, panel, S);
            if S == 2 {
                split(panel);
            }
        }
        panels
    }

    /// Reads `b` once, a few rows side by side, against every row of `a`.
    #[target_feature(enable = "avx2")]
    fn stream<const BYTES: usize, const S: usize, A: Accumulator>(&self, take: Take<'_, A>) {
        let (m, n, vectors) = (self.a.rows, self.b.rows, self.length().div_ceil(ELEMENTS));
        // Of each row its slices, in words.
        let a: Vec<[Vec<__m256i>; S]> = (0..m).map(|row| self.row_of_a(row)).collect();
        // A lane gets two products of a vector, and an eighth of all.
        let stretch = (self.stretch / 2).clamp(1, vectors.max(1));
        let fit = self.length() <= self.stretch;
        let mut sums = vec![[A::ZERO; LANES]; m];
        for first in (0..n).step_by(LANES) {
            sums.fill([A::ZERO; LANES]);
            let (columns, b) = (LANES.min(n - first), self.b.sixteen(first));
            for (group, b) in b.as_chunks::<STREAMS>().0.iter().enumerate().take(columns.div_ceil(STREAMS)) {
                for (a, sums) in a.iter().zip(&mut sums) {
                    let sums = &mut sums.as_chunks_mut::<STREAMS>().0[group];
                    for start in (0..vectors).step_by(stretch) {
                        let end = vectors.min(start + stretch);
                        let bytes = start * BYTES..b[0].len().min(end * BYTES);
                        let lanes =
                            dots::<BYTES, S>(a.each_ref().map(|a| &a[start..end]), b.map(|b| &b[bytes.clone()]));
                        for (s, lanes) in lanes.into_iter().enumerate() {
                            let parts = if fit { sums_of(lanes).map(i64::from) } else { lanes.map(|x| wide_sum_of(x)) };
                            for (sum, part) in sums.iter_mut().zip(parts) {
                                *sum = *sum + (A::narrow(part) << (8 * s as u32));
                            }
                        }
                    }
                }
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                take((row, first), sums);
            }
        }
    }

    /// The slices of a row of `a`, low first.
    #[target_feature(enable = "avx2")]
    fn row_of_a<const S: usize>(&self, row: usize) -> [Vec<__m256i>; S] {
        let row = self.a.row(row);
        let words: Vec<__m256i> = if self.bytes.0 == 1 {
            row.chunks(ELEMENTS).map(|part| some_words::<ELEMENTS>(part)).collect()
        } else {
            row.chunks(2 * ELEMENTS).map(|part| some_words::<{ 2 * ELEMENTS }>(part)).collect()
        };
        std::array::from_fn(|s| words.iter().map(|x| if S == 1 { *x } else { slices(*x)[s] }).collect())
    }
}

/// [`pack`] of bytes, or of words.
#[target_feature(enable = "avx2")]
fn pack_elements(rows: &Matrix<'_>, bytes: usize, panel: &mut [Lanes], stride: usize) {
    if bytes == 1 {
        pack::<ELEMENTS>(rows, panel, stride);
    } else {
        pack::<{ 2 * ELEMENTS }>(rows, panel, stride);
    }
}
