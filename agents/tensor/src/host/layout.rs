//! Operators that move elements.

use tensorlink_num::operators::{self, AtStep, Transpose};
use tensorlink_program::EngineError;

use super::block::Element;
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

/// Rule N-47 of rows of `row` elements, of which `width` are taken.
pub(crate) fn slice<T: Element>(a: &[T], (row, width): (usize, usize), offset: usize, out: &mut [T]) {
    for (out, a) in out.chunks_exact_mut(width).zip(a.chunks_exact(row)) {
        out.copy_from_slice(&a[offset..offset + width]);
    }
}

/// Rule N-44: the row for a step of a table of rows as long as the output.
pub(crate) fn at_step<T: Element>(table: &[T], step: u32, out: &mut [T]) {
    let last = (table.len() / out.len()).saturating_sub(1);
    let first = last.min(step as usize) * out.len();
    out.copy_from_slice(&table[first..first + out.len()]);
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

impl OnHost for Transpose {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        transposed(on.simd, on.operand(0)?, (self.rows as usize, self.columns as usize), out)?;
        Ok(())
    }
}

impl OnHost for operators::Slice {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let lengths = (self.row as usize, self.width as usize);
        same_width!(on.operand(0)?, out, (a, out) => slice(a, lengths, self.offset as usize, out));
        Ok(())
    }
}

impl OnHost for AtStep {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        same_width!(on.operand(0)?, out, (a, out) => at_step(a, on.context.step, out));
        Ok(())
    }
}
