//! Operators that move elements.

use super::block::Element;

/// Side of the square that a transposition moves at once, so that reads and writes both stay in cache.
const TILE: usize = 32;

/// Rule N-12 of an `m × n` matrix.
pub(crate) fn transpose<T: Element>(a: &[T], (m, n): (usize, usize), out: &mut [T]) {
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
