//! Operators that move elements.

use super::block::Element;
use crate::simd::Simd;

/// Side of the square that a transposition moves at once, so that reads and writes both stay in cache.
const TILE: usize = 32;

/// Rule N-12 of an `m × n` matrix.
pub(crate) fn transpose<T: Element>(_: Simd, a: &[T], (m, n): (usize, usize), out: &mut [T]) {
    for row in (0..m).step_by(TILE) {
        for column in (0..n).step_by(TILE) {
            for i in row..m.min(row + TILE) {
                let from = &a[i * n..(i + 1) * n];
                for j in column..n.min(column + TILE) {
                    out[j * m + i] = from[j];
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
