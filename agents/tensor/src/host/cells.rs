//! Entries of tables, and what lies between them.

use super::block::{Accumulator, BLOCK};
use crate::simd::{Simd, multiversion};

/// Limit of the 63-bit intermediate of Lookup and ExpNeg.
pub(crate) const LIMIT_63: i64 = (1 << 62) - 1;

/// Where the elements of a block lie in their table.
pub(crate) struct Cells<A> {
    /// How far past its entry an element lies; the entry's number is left in the element's place.
    pub(crate) rest: [A; BLOCK],
    /// Places to round away at the end, for each element (ExpNeg).
    pub(crate) places: [A; BLOCK],
    /// The entry after an element's own.
    next: [A; BLOCK],
}

impl<A: Accumulator> Cells<A> {
    pub(crate) const fn new() -> Self {
        Self { rest: [A::ZERO; BLOCK], places: [A::ZERO; BLOCK], next: [A::ZERO; BLOCK] }
    }

    /// Replaces entry numbers by `table[j]·(2^f − r) + table[j+1]·r`.
    pub(crate) fn interpolate(&mut self, simd: Simd, table: &[A], block: &mut [A], fraction_bits: u32) {
        for (x, next) in block.iter_mut().zip(&mut self.next) {
            // The passes before keep entry numbers below the last entry's.
            let j = x.wide() as usize;
            if let [left, right] = table[j..j + 2] {
                (*x, *next) = (left, right);
            }
        }
        blend(simd, block, &self.next, &self.rest, fraction_bits);
    }
}

multiversion! {
    fn blend<A: Accumulator>(left: &mut [A], right: &[A], rest: &[A], fraction_bits: u32) {
        for ((left, right), rest) in left.iter_mut().zip(right).zip(rest) {
            *left = (*left << fraction_bits) + (*right - *left) * *rest;
        }
    }
}
