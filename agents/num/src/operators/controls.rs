//! Rows of the seven numbers that say how a token is chosen (rules N-35 to N-37).

use super::check::{A, Check, magnitude};
use super::site::{Read, Site, run};
use super::whole::rows;
use crate::bounds::CONTROLS;
use crate::error::{OpError, Place};
use crate::philox::philox4x32;

/// A row of controls.
pub(super) struct Controls(pub(super) [i128; CONTROLS as usize]);

impl Controls {
    /// Row m, given by this operand.
    pub(super) fn of_row(site: &Site<'_>, operand: usize, m: u64) -> Result<Self, OpError> {
        let mut row = [0; CONTROLS as usize];
        for (i, slot) in (m.saturating_mul(CONTROLS)..).zip(&mut row) {
            *slot = site.get(operand, i)?;
        }
        Ok(Self(row))
    }

    /// Where row m lies.
    pub(super) const fn read(operand: usize, m: u64) -> Read {
        run(operand, m.saturating_mul(CONTROLS), CONTROLS)
    }

    pub(super) fn temperature(&self) -> i128 {
        let [_, temperature, ..] = self.0;
        temperature.max(0)
    }

    /// Output word 0 of Philox4x32-10 for place `v` of a row.
    pub(super) fn draw(&self, v: u64) -> u32 {
        let [_, _, position, _, _, s0, s1] = self.0;
        // SAFETY of the casts: rule N-36 takes each modulo 2^32.
        let [word, ..] = philox4x32([s0 as u32, s1 as u32], [v as u32, position as u32, 0, 0]);
        word
    }
}

/// All rows.
pub(super) fn rows_of_controls(controls: &[i64]) -> impl Iterator<Item = [i64; CONTROLS as usize]> {
    rows(controls, CONTROLS).map(|row| row.try_into().unwrap_or_default())
}

impl Check<'_> {
    /// A row of seven controls for each of `rows`.
    pub(super) fn controls(&self, place: Place, rows: u64) -> Result<(), OpError> {
        let ty = self.ty(place);
        let holds = ty.rows() == rows && ty.row() == CONTROLS && ty.exponent() == 0;
        self.require(place, holds, "a row of seven controls for each row, of exponent 0")
    }

    /// A threshold for each row of the first operand, which attribute 0 is added to: gives that.
    pub(super) fn threshold(&self, place: Place) -> Result<i64, OpError> {
        let t = self.ty(place);
        self.one_per_row(place)?;
        self.require(place, t.exponent() == self.ty(A).exponent(), "of the first operand's exponent")?;
        let bound = self.coefficient(0)?;
        self.accumulator(magnitude(t).saturating_add(u128::from(bound.unsigned_abs())))?;
        Ok(bound)
    }
}
