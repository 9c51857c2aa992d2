//! Matrices transposed, and what products of libtorch are finished with (rules N-12, N-25 and N-51).

use tensorlink_num::operators::{MatMul, ScaledMatMul, Transpose};
use tensorlink_program::EngineError;

use super::block::{Element, Precision, for_blocks, for_rows, rescale};
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut, same_width};

/// Side of the square that is transposed at once: its lines are whole lines of a cache or more, and two squares fit a
/// first-level cache.
const fn side<T>() -> usize {
    if size_of::<T>() < 8 { 64 } else { 32 }
}

/// Interleaves the halves of `from`.
#[inline(always)]
fn riffle<T: Element>(from: &[T], to: &mut [T]) {
    let (low, high) = from.split_at(from.len() / 2);
    for ((pair, a), b) in to.chunks_exact_mut(2).zip(low).zip(high) {
        (pair[0], pair[1]) = (*a, *b);
    }
}

multiversion! {
    /// Rule N-12 of an `m × n` matrix.
    ///
    /// Squares are copied out, line by line, transposed and copied in: distances of a power of two between lines, which
    /// share a place in a cache, cost nothing then. Interleaving the halves of a square moves the highest bit of each
    /// element's place to the lowest: done once for each bit of a row's number it exchanges rows and columns.
    pub(crate) fn transpose<T: Element>(a: &[T], shape: (usize, usize), out: &mut [T]) {
        let ((m, n), side) = (shape, side::<T>());
        if m == 1 || n == 1 {
            out.copy_from_slice(a);
            return;
        }
        let (mut square, mut other) = (vec![T::default(); side * side], vec![T::default(); side * side]);
        for row in (0..m).step_by(side) {
            for column in (0..n).step_by(side) {
                let (rows, columns) = (side.min(m - row), side.min(n - column));
                for (line, i) in square.chunks_exact_mut(side).zip(row..row + rows) {
                    let from = &a[i * n + column..];
                    // Whole lines are copied without a call.
                    if columns == side {
                        line.copy_from_slice(&from[..side]);
                    } else {
                        line[..columns].copy_from_slice(&from[..columns]);
                    }
                }
                for _ in 0..side.ilog2() {
                    riffle(&square, &mut other);
                    std::mem::swap(&mut square, &mut other);
                }
                for (line, j) in square.chunks_exact(side).zip(column..column + columns) {
                    let to = &mut out[j * m + row..];
                    if rows == side {
                        to[..side].copy_from_slice(line);
                    } else {
                        to[..rows].copy_from_slice(&line[..rows]);
                    }
                }
            }
        }
    }
}

/// Rule N-12 of `m × n` matrices, one after another.
///
/// # Errors
/// [`EngineError::Malformed`] if the output has another width.
pub(crate) fn transposed(
    simd: Simd,
    a: Slice<'_>,
    (m, n): (usize, usize),
    out: &mut SliceMut<'_>,
) -> Result<(), EngineError> {
    same_width!(a, out, (a, out) => {
        for (a, out) in a.chunks_exact(m * n).zip(out.chunks_exact_mut(m * n)) {
            transpose(simd, a, (m, n), out);
        }
    });
    Ok(())
}

multiversion! {
    fn scale_part(sums: &mut [i64], r: i64, c: &[i64], to: Precision) {
        for (sum, c) in sums.iter_mut().zip(c) {
            *sum *= r * *c;
        }
        rescale(sums, to.shift, to.limit);
    }
}

/// `rescale(r·c[n]·sums[m,n])`, each row with an r and a rounding of its own.
pub(crate) fn scale_rows(
    simd: Simd,
    sums: Slice<'_>,
    (rows, c): (&[(i64, Precision)], &[i64]),
    out: &mut SliceMut<'_>,
) {
    for_blocks::<i64>(simd, out, |start, block| {
        sums.load(simd, start, block);
        for_rows(start, c.len(), block, |m, first, part| {
            let (r, to) = rows[m];
            scale_part(simd, part, r, &c[first..], to);
        });
    });
}

impl OnHost for Transpose {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        transposed(on.simd, on.operand(0)?, (self.rows as usize, self.columns as usize), out)?;
        Ok(())
    }
}

// Products, by kernels of their own.
impl OnHost for MatMul {}
impl OnHost for ScaledMatMul {}
