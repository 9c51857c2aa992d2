//! One product: many rows of `a` by packed tiles, a few by reading `b` in place.

use super::super::block::{Accumulator, Element};
use super::finish::{Finish, MOST};
use super::matrix::Matrix;
use super::pack::{LANES, Lanes, VECTOR, WORD, pack};
use super::tile::{Dot, Sums, dots, tile};

/// From this many rows of `a` on, packing pays.
const PACKED_ROWS: usize = 12;
/// Most panels of columns of a tile.
const NR: usize = 3;
/// Rows of `b` that are read side by side when nothing is packed.
const STREAMS: usize = 4;

const _: () = assert!(NR * LANES <= MOST && STREAMS <= MOST, "a row of a tile is finished at once");

/// A product to compute, or a part of one: `a = Σ 256^s · a[s]`.
pub(super) struct Product<'a, const S: usize> {
    pub(super) a: [Matrix<'a>; S],
    pub(super) b: Matrix<'a>,
    /// Products that a 32-bit lane can hold.
    pub(super) stretch: usize,
    /// Row and column of the whole product at which this part begins.
    pub(super) origin: (usize, usize),
}

/// `a` in panels.
struct Packed {
    panels: Vec<Lanes>,
    /// Words of each panel up to the last that is not 0: causal probabilities end in zeros.
    used: Vec<usize>,
    /// What flipping `b` adds to each row's sums.
    bias: Vec<i64>,
}

impl<const S: usize> Product<'_, S> {
    /// Computes with `MR` rows a tile, sums in `A`, into rows of `out` that are `stride` apart.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    pub(super) fn run<D: Dot, const MR: usize, A: Accumulator, T: Element>(
        &self,
        finish: &impl Finish,
        out: &mut [T],
        stride: usize,
    ) {
        let (m, n, width) = (self.a[0].rows, self.b.rows, self.b.width);
        assert!(self.a.iter().all(|a| a.rows == m && a.width == width), "slices of one shape, rows of one length");
        assert!(m == 0 || (m - 1) * stride + n <= out.len(), "m × n elements");
        if m < PACKED_ROWS {
            self.stream::<D, A, T>(finish, out, stride);
            return;
        }
        let packed = self.pack_a::<D>();
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
                1 => self.columns::<D, MR, 1, A, T>(&packed, &mut b, first, finish, (&mut *out, stride)),
                2 => self.columns::<D, MR, 2, A, T>(&packed, &mut b, first, finish, (&mut *out, stride)),
                _ => self.columns::<D, MR, NR, A, T>(&packed, &mut b, first, finish, (&mut *out, stride)),
            }
            first += panels * LANES;
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn pack_a<D: Dot>(&self) -> Packed {
        let first = &self.a[0];
        let words = first.width.div_ceil(WORD);
        let mut panels = vec![Lanes::ZERO; first.rows.div_ceil(LANES) * words * S];
        let mut used = Vec::with_capacity(first.rows.div_ceil(LANES));
        for (i, panel) in panels.chunks_exact_mut(words * S).enumerate() {
            // Word w of slice s is group w·S + s of lanes.
            for (s, slice) in self.a.iter().enumerate() {
                pack(&slice.part(i * LANES, LANES), 0, &mut panel[s..], S);
            }
            let last = panel.iter().rposition(|lanes| lanes.0 != Lanes::ZERO.0);
            used.push(last.map_or(0, |last| last / S + 1));
        }
        // SAFETY: VNNI is enabled for this function.
        let bias = (0..first.rows).map(|row| unsafe { D::bias(first.row(row)) }).collect();
        Packed { panels, used, bias }
    }

    /// Packs `NR` panels of columns and computes their tiles.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn columns<D: Dot, const MR: usize, const NR: usize, A: Accumulator, T: Element>(
        &self,
        a: &Packed,
        b: &mut [Lanes],
        first: usize,
        finish: &impl Finish,
        (out, stride): (&mut [T], usize),
    ) {
        let words = self.b.width.div_ceil(WORD);
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
            let mut sums: Sums<A, MR, NR> = [[[A::ZERO; LANES]; NR]; MR];
            for (a, b) in panel.chunks(stretch * S).zip(b.chunks(stretch * NR)) {
                tile::<D, S, MR, NR, A>(a, row % LANES, b, &mut sums);
            }
            for (i, (sums, bias)) in sums.iter_mut().zip(bias).enumerate() {
                let sums = &mut sums.as_flattened_mut()[..width];
                if D::FLIP != 0 {
                    let bias = A::narrow(*bias);
                    for sum in sums.iter_mut() {
                        *sum = *sum - bias;
                    }
                }
                let out = &mut out[(row + i) * stride + first..][..width];
                finish.finish((self.origin.0 + row + i, self.origin.1 + first), sums, out);
            }
        }
    }

    /// Reads `b` once, a few rows side by side, against every row of `a`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn stream<D: Dot, A: Accumulator, T: Element>(&self, finish: &impl Finish, out: &mut [T], stride: usize) {
        let width = self.b.width;
        // A lane gets a sixteenth of the products.
        let stretch = (self.stretch.saturating_mul(LANES) / (VECTOR / D::BYTES)).max(1).saturating_mul(VECTOR);
        // SAFETY: VNNI is enabled for this function.
        let bias: Vec<i64> = (0..self.a[0].rows).map(|row| unsafe { D::bias(self.a[0].row(row)) }).collect();
        for first in (0..self.b.rows).step_by(STREAMS) {
            let columns = STREAMS.min(self.b.rows - first);
            // The last columns repeat one, so that there are as many as everywhere.
            let b: [&[u8]; STREAMS] = std::array::from_fn(|j| self.b.row(first + j.min(columns - 1)));
            for (row, bias) in bias.iter().enumerate() {
                let a: [&[u8]; S] = std::array::from_fn(|s| self.a[s].row(row));
                let mut sums = [A::ZERO; STREAMS];
                for start in (0..width).step_by(stretch) {
                    let range = start..width.min(start.saturating_add(stretch));
                    dots::<D, S, STREAMS, A>(a.map(|a| &a[range.clone()]), b.map(|b| &b[range.clone()]), &mut sums);
                }
                for sum in &mut sums {
                    *sum = *sum - A::narrow(*bias);
                }
                let out = &mut out[row * stride + first..][..columns];
                finish.finish((self.origin.0 + row, self.origin.1 + first), &mut sums[..columns], out);
            }
        }
    }
}
