//! One product by tiles.

use std::arch::x86_64::{
    __m512i, _MM_HINT_T1, _mm_prefetch, _mm512_add_epi32, _mm512_add_epi64, _mm512_setzero_si512, _mm512_slli_epi32,
    _mm512_slli_epi64,
};

use super::super::block::Element;
use super::super::vnni::finish::{Finish, widen};
use super::super::vnni::lanes::{LANES, Lanes, VECTOR, WORD, load};
use super::super::vnni::matrix::Matrix;
use super::super::vnni::pack::{pack, transpose, used};
use super::slices::Slices;
use super::tile::{Block, Halves, RightHalves, Signed, Signs, Tile, Tiles};

/// Rows that a block has on either side.
const ROWS: usize = 2 * LANES;
/// Most bytes of packed rows: half of a second-level cache.
const PACKED: usize = 1 << 20;

/// A product to compute, or a part of one.
pub(super) struct Product<'a> {
    pub(super) a: Matrix<'a>,
    pub(super) b: Matrix<'a>,
    /// Row and column of the whole product at which this part begins.
    pub(super) origin: (usize, usize),
}

/// Where sums become mantissas.
pub(super) struct Target<'a, F, T> {
    pub(super) finish: &'a F,
    /// Whether sums come in 32 bits.
    pub(super) narrow: bool,
    pub(super) out: &'a mut [T],
    /// From the start of a row to the start of the next.
    pub(super) stride: usize,
}

impl<F: Finish, T: Element> Target<'_, F, T> {
    /// Finishes a block of 32 by 32 sums, tiles of which have columns of the result as rows.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    fn turned(&mut self, product: &Product<'_>, (row, column): (usize, usize), sums: &[Tile; 4]) {
        for (i, tile) in sums.iter().enumerate() {
            let (row, column) = (row + i % 2 * LANES, column + i / 2 * LANES);
            if column < product.b.rows {
                self.turned_tile(product, (row, column), tile);
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    fn turned_tile(&mut self, product: &Product<'_>, (row, column): (usize, usize), tile: &Tile) {
        let width = LANES.min(product.b.rows - column);
        for (r, sums) in (row..product.a.rows).zip(columns(tile)) {
            let out = &mut self.out[r * self.stride + column..][..width];
            let place = (product.origin.0 + r, product.origin.1 + column);
            // SAFETY: AVX-512 is enabled for this function.
            unsafe {
                if self.narrow {
                    self.finish.finish_narrow(place, sums, out);
                } else {
                    self.finish.finish_wide(place, widen(sums), out);
                }
            }
        }
    }

    /// Finishes a block of 16 by 32 sums of words by bytes from the tiles of the words' halves, which have columns of
    /// the result as rows.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    fn turned_halves(&mut self, product: &Product<'_>, (row, first): (usize, usize), sums: &[Tile; 4]) {
        for ([high, low], column) in sums.as_chunks().0.iter().zip((first..product.b.rows).step_by(LANES)) {
            let width = LANES.min(product.b.rows - column);
            let halves = columns(high).into_iter().zip(columns(low));
            for (r, (high, low)) in (row..product.a.rows).zip(halves) {
                let out = &mut self.out[r * self.stride + column..][..width];
                let place = (product.origin.0 + r, product.origin.1 + column);
                // SAFETY: AVX-512 is enabled for this function.
                unsafe { self.finish.finish_halves(place, (self.narrow, [high, low]), out) };
            }
        }
    }

    /// Finishes sums of words from the tiles of their halves.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    fn joined(&mut self, product: &Product<'_>, (row, column): (usize, usize), [high, left, right, low]: &[Tile; 4]) {
        let width = LANES.min(product.b.rows - column);
        let halves = high.iter().zip(left).zip(right).zip(low);
        for (r, (((high, left), right), low)) in (row..product.a.rows).zip(halves) {
            let parts = [load(high), _mm512_add_epi32(load(left), load(right)), load(low)];
            self.row(product, (r, column), width, parts);
        }
    }

    /// Finishes `width` sums of a row from their parts: high, middle, low.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    fn row(&mut self, product: &Product<'_>, (row, column): (usize, usize), width: usize, parts: [__m512i; 3]) {
        let out = &mut self.out[row * self.stride + column..][..width];
        let place = (product.origin.0 + row, product.origin.1 + column);
        // SAFETY: AVX-512 is enabled for this function.
        unsafe {
            if self.narrow {
                self.finish.finish_narrow(place, join_narrow(parts), out);
            } else {
                self.finish.finish_wide(place, join_wide(parts), out);
            }
        }
    }
}

/// The block before the last, which is finished while tiles compute the last.
struct Delay {
    sums: [[Tile; 4]; 2],
    turn: usize,
    /// Where the last block's sums belong.
    place: Option<(usize, usize)>,
}

impl Delay {
    const fn new() -> Self {
        Self { sums: [[[Lanes::ZERO; LANES]; 4]; 2], turn: 0, place: None }
    }

    /// Starts on a block that belongs to a place, and gives what was started on before.
    #[inline]
    fn multiply<S: Signs>(
        &mut self,
        tiles: &Tiles,
        block: &Block<'_>,
        place: (usize, usize),
    ) -> Option<((usize, usize), &[Tile; 4])> {
        S::multiply(tiles, block, &mut self.sums[self.turn]);
        self.turn = 1 - self.turn;
        self.place.replace(place).map(|place| (place, &self.sums[self.turn]))
    }

    /// What was started on last.
    fn last(&self) -> Option<((usize, usize), &[Tile; 4])> {
        self.place.map(|place| (place, &self.sums[1 - self.turn]))
    }
}

impl Product<'_> {
    /// Of bytes. Rows of `b`, of which there are many, are read in place; those of `a` are packed. So tiles come
    /// out turned.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn bytes<T: Element>(&self, tiles: &Tiles, mut target: Target<'_, impl Finish, T>) {
        let (m, n, steps) = (self.a.rows, self.b.rows, self.a.width.div_ceil(VECTOR));
        let most = (PACKED / (steps * VECTOR)).next_multiple_of(ROWS);
        let mut panels = vec![Lanes::ZERO; most.min(m).next_multiple_of(ROWS) * steps];
        let (mut copy, mut delay) = (Vec::new(), Delay::new());
        for start in (0..m).step_by(most) {
            let a = self.a.part(start, most);
            pack_all(&a, &mut panels, steps);
            for column in (0..n).step_by(ROWS) {
                let (left, stride) = in_place(&self.b, column, steps, &mut copy);
                let left = [left, &left[LANES * stride..]];
                for (pair, row) in panels.chunks_exact(ROWS * steps).zip((0..a.rows).step_by(ROWS)) {
                    self.fetch(column + ROWS, (row / ROWS, a.rows.div_ceil(ROWS)));
                    let (first, second) = pair.split_at(LANES * steps);
                    let block = Block { left, stride, right: [first, second], steps };
                    if let Some((place, sums)) = delay.multiply::<Signed>(tiles, &block, (start + row, column)) {
                        target.turned(self, place, sums);
                    }
                }
            }
        }
        if let Some((place, sums)) = delay.last() {
            target.turned(self, place, sums);
        }
    }

    /// Of words, by their halves: four products of bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn words<T: Element>(&self, tiles: &Tiles, mut target: Target<'_, impl Finish, T>) {
        let (m, n, width) = (self.a.rows, self.b.rows, self.a.width);
        let steps = (width / 2).div_ceil(VECTOR);
        let mut a = Slices::new(m, width);
        a.fill(&self.a);
        // Causal probabilities end in zeros.
        let used: Vec<usize> =
            (0..m).step_by(LANES).map(|row| (used(&self.a.part(row, LANES)) / 2).div_ceil(VECTOR)).collect();
        let most = (PACKED / (2 * VECTOR * steps)).next_multiple_of(LANES);
        let room = || vec![Lanes::ZERO; most.min(n).next_multiple_of(LANES) * steps];
        let (mut b, mut panels, mut delay) = (Slices::new(LANES, width), [room(), room()], Delay::new());
        for start in (0..n).step_by(most) {
            let columns = (start..n.min(start + most)).step_by(LANES);
            for (i, column) in columns.clone().enumerate() {
                b.fill(&self.b.part(column, LANES));
                for (half, panels) in b.matrices().iter().zip(&mut panels) {
                    pack(half, 0, &mut panels[i * LANES * steps..][..LANES * steps], 1);
                }
            }
            for (row, used) in (0..m).step_by(LANES).zip(&used) {
                for (i, column) in columns.clone().enumerate() {
                    let right = [&panels[0][i * LANES * steps..], &panels[1][i * LANES * steps..]];
                    let block = Block { left: a.from(row), stride: a.stride, right, steps: *used };
                    if let Some((place, sums)) = delay.multiply::<Halves>(tiles, &block, (row, column)) {
                        target.joined(self, place, sums);
                    }
                }
            }
        }
        if let Some((place, sums)) = delay.last() {
            target.joined(self, place, sums);
        }
    }

    /// Of words by bytes, by the words' halves: two products of bytes. Rows of `b` are read in place.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn words_by_bytes<T: Element>(&self, tiles: &Tiles, mut target: Target<'_, impl Finish, T>) {
        let (m, n, steps) = (self.a.rows, self.b.rows, self.b.width.div_ceil(VECTOR));
        let panel = LANES * steps;
        let most = (PACKED / (2 * VECTOR * steps)).next_multiple_of(LANES);
        let mut panels = vec![Lanes::ZERO; 2 * most.min(m).next_multiple_of(LANES) * steps];
        let (mut a, mut copy, mut delay) = (Slices::new(LANES, self.a.width), Vec::new(), Delay::new());
        for start in (0..m).step_by(most) {
            let rows = (start..m.min(start + most)).step_by(LANES);
            for (row, halves) in rows.clone().zip(panels.chunks_exact_mut(2 * panel)) {
                a.fill(&self.a.part(row, LANES));
                for (half, panel) in a.matrices().iter().zip(halves.chunks_exact_mut(panel)) {
                    pack(half, 0, panel, 1);
                }
            }
            for column in (0..n).step_by(ROWS) {
                let (left, stride) = in_place(&self.b, column, steps, &mut copy);
                let left = [left, &left[LANES * stride..]];
                for (i, (halves, row)) in panels.chunks_exact(2 * panel).zip(rows.clone()).enumerate() {
                    self.fetch(column + ROWS, (i, rows.len()));
                    let (high, low) = halves.split_at(panel);
                    let block = Block { left, stride, right: [high, low], steps };
                    if let Some((place, sums)) = delay.multiply::<RightHalves>(tiles, &block, (row, column)) {
                        target.turned_halves(self, place, sums);
                    }
                }
            }
        }
        if let Some((place, sums)) = delay.last() {
            target.turned_halves(self, place, sums);
        }
    }

    /// Fetches one of so many parts of the rows of `b` that come next.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn fetch(&self, row: usize, (part, parts): (usize, usize)) {
        let length = (ROWS * self.b.stride).div_ceil(parts);
        let rows = self.b.from(row).as_ptr().wrapping_add(part * length);
        for line in (0..length).step_by(VECTOR) {
            // Prefetching is no access: the address may lie beyond the matrix.
            _mm_prefetch::<_MM_HINT_T1>(rows.wrapping_add(line).cast());
        }
    }
}

/// Columns of a tile.
#[target_feature(enable = "avx512f")]
#[inline]
fn columns(tile: &Tile) -> [__m512i; LANES] {
    let mut rows = [_mm512_setzero_si512(); LANES];
    for (row, lanes) in rows.iter_mut().zip(tile) {
        *row = load(lanes);
    }
    transpose(rows)
}

/// Packs rows of bytes, panel after panel of `steps` vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn pack_all(rows: &Matrix<'_>, panels: &mut [Lanes], steps: usize) {
    for (panel, row) in panels.chunks_exact_mut(LANES * steps).zip((0..).step_by(LANES)) {
        pack(&rows.part(row, LANES), 0, &mut panel[..rows.width.div_ceil(WORD)], 1);
    }
}

/// 32 rows of `steps` vectors and how far they are apart: in place, or copied, zeros around them, where that would
/// leave the memory.
fn in_place<'a>(matrix: &Matrix<'a>, first: usize, steps: usize, copy: &'a mut Vec<u8>) -> (&'a [u8], usize) {
    let width = steps * VECTOR;
    let rows = matrix.from(first);
    if rows.len() >= (ROWS - 1) * matrix.stride + width {
        return (rows, matrix.stride);
    }
    copy.clear();
    copy.resize(ROWS * width, 0);
    let rows = matrix.part(first, ROWS);
    for (r, copy) in copy.chunks_exact_mut(width).enumerate().take(rows.rows) {
        copy[..rows.width].copy_from_slice(rows.row(r));
    }
    (copy, width)
}

/// `2^16·high + 2^8·middle + low`, which fits 32 bits; parts of it need not.
#[target_feature(enable = "avx512f")]
#[inline]
fn join_narrow([high, middle, low]: [__m512i; 3]) -> __m512i {
    let above = _mm512_add_epi32(_mm512_slli_epi32::<16>(high), _mm512_slli_epi32::<8>(middle));
    _mm512_add_epi32(above, low)
}

/// The same in 64 bits.
#[target_feature(enable = "avx512f")]
#[inline]
fn join_wide([high, middle, low]: [__m512i; 3]) -> [__m512i; 2] {
    let (mut sums, middle, low) = (widen(high), widen(middle), widen(low));
    for ((sum, middle), low) in sums.iter_mut().zip(middle).zip(low) {
        *sum = _mm512_add_epi64(_mm512_slli_epi64::<16>(*sum), _mm512_add_epi64(_mm512_slli_epi64::<8>(middle), low));
    }
    sums
}
