//! Rules N-18 and N-20: where in its table an element interpolates.

use super::Site;
use crate::checked::{EXP_ARGUMENT_MAX, Lookup};
use crate::error::OpError;
use crate::fixed::rescale;

/// Where in its table a Lookup or ExpNeg interpolates: between entries `entry` and `entry + 1`, `rest` units past the
/// first.
pub(super) struct Cell {
    pub(super) entry: u64,
    pub(super) rest: i128,
    /// Binary places by which the result is shifted on top (ExpNeg's `n`).
    pub(super) octaves: i64,
}

impl<F: Fn(usize, u64) -> Option<i64>> Site<'_, F> {
    /// `table[j]·(2^f − r) + table[j+1]·r`.
    pub(super) fn interpolate(&self, table: usize, cell: &Cell, fraction_bits: u32) -> Result<i128, OpError> {
        let (low, high) = (self.get(table, cell.entry)?, self.get(table, cell.entry.saturating_add(1))?);
        let unit = 1i128.wrapping_shl(fraction_bits);
        Ok(low.saturating_mul(unit.saturating_sub(cell.rest)).saturating_add(high.saturating_mul(cell.rest)))
    }

    pub(super) fn lookup_cell(&self, lookup: &Lookup) -> Result<Cell, OpError> {
        let top = 1i128.wrapping_shl(lookup.log.saturating_add(lookup.fraction_bits));
        let x = i128::from(rescale(self.get(0, self.index)?, lookup.input_shift, 63));
        let u = x.saturating_sub(lookup.low.into()).clamp(0, top);
        let last = 1i128.wrapping_shl(lookup.log).saturating_sub(1);
        let j = u.wrapping_shr(lookup.fraction_bits).min(last);
        let rest = u.saturating_sub(j.wrapping_shl(lookup.fraction_bits));
        // SAFETY of the cast: 0 ≤ j < 2^12.
        Ok(Cell { entry: j as u64, rest, octaves: 0 })
    }

    pub(super) fn exp_cell(&self, depth: u64, multiplier: i64, input_shift: i64) -> Result<Cell, OpError> {
        let (a, max) = (self.get(0, self.index)?, self.get(1, self.split(depth).0)?);
        let z = max.saturating_sub(a).max(0);
        let u = rescale(z.saturating_mul(multiplier.into()), input_shift, 63).min(EXP_ARGUMENT_MAX);
        // SAFETY of the cast: 0 ≤ (u mod 2^16) / 2^8 < 256.
        Ok(Cell { entry: ((u & 0xffff) >> 8) as u64, rest: (u & 0xff).into(), octaves: u >> 16 })
    }
}
