//! Rules N-32 to N-37: how a token is chosen.

use super::check::{A, B, C, Check, D, E, OUT, exponent, magnitude};
use super::{
    CHOICE_BITS, CONTROLS, CheckedOperator, GUMBEL_EXPONENT, GUMBEL_TABLE_LEN, MAX_PERTURB_PLACES, PERTURB_EXPONENT,
    Perturb, TailSum,
};
use crate::error::{OpError, Place};

impl Check<'_> {
    pub(super) fn row_arg_max(&self) -> Result<CheckedOperator, OpError> {
        let depth = self.equal_parts(OUT)?;
        self.chosen_place()?;
        Ok(CheckedOperator::RowArgMax { depth: self.reduction(depth)? })
    }

    pub(super) fn row_pick(&self) -> Result<CheckedOperator, OpError> {
        let depth = self.equal_parts(OUT)?;
        let as_many = self.ty(B).elements() == self.ty(OUT).elements();
        self.require(B, as_many && self.ty(B).exponent() == 0, "one element for each of the output, of exponent 0")?;
        self.same_precision()?;
        Ok(CheckedOperator::RowPick { depth })
    }

    pub(super) fn tail_sum(&self) -> Result<CheckedOperator, OpError> {
        let (a, w) = (self.ty(A), self.ty(B));
        self.require(
            B,
            w.rows() == a.rows() && w.row() == a.row(),
            "of as many and as long rows as the first operand",
        )?;
        self.require(B, w.bits() <= 32, "of at most 32 bits")?;
        let bound = self.threshold(C)?;
        let depth = self.reduction(self.equal_parts(OUT)?)?;
        let weighted = self.attribute(1, 0, 1)? == 1;
        let places = if weighted { exponent(w) } else { 0 };
        let parts = a.row().checked_div(depth).unwrap_or(1);
        Ok(CheckedOperator::TailSum(TailSum { depth, parts, bound, weighted, shift: self.bound_shift(2, places)? }))
    }

    pub(super) fn raise_threshold(&self) -> Result<CheckedOperator, OpError> {
        let (t, counts, masses, totals) = (self.ty(A), self.ty(B), self.ty(C), self.ty(D));
        let rows = t.elements();
        let parts = counts.row();
        self.require(B, counts.rows() == rows, "one row for each element of the first operand")?;
        self.require(B, counts.exponent() == 0, "of exponent 0")?;
        for place in [C, D] {
            let ty = self.ty(place);
            let alike = ty.rows() == rows && ty.row() == parts;
            self.require(place, alike, "of as many and as long rows as the second operand")?;
        }
        self.require(C, masses.bits() <= 32, "of at most 32 bits")?;
        let same = totals.bits() == masses.bits() && totals.exponent() == masses.exponent();
        self.require(D, same, "of the same bits and exponent as the third operand")?;
        self.controls(E, rows)?;
        let holds = self.ty(OUT) == t;
        self.require(OUT, holds, "of the first operand's type")?;
        self.reduction(parts)?;
        let step = self.step(0)?;
        self.accumulator(magnitude(counts).saturating_mul(u128::from(parts)))?;
        self.accumulator(magnitude(t).saturating_add(u128::from(step.unsigned_abs())))?;
        // Sums of at most 4096 masses of 32 bits, times at most 2^16: far inside N-6.
        Ok(CheckedOperator::Threshold { parts, step })
    }

    pub(super) fn perturb(&self) -> Result<CheckedOperator, OpError> {
        let (a, controls, table) = (self.ty(A), self.ty(C), self.ty(D));
        self.same_shape(OUT, A)?;
        self.require(A, a.bits() <= 32, "of at most 32 bits")?;
        let bound = self.threshold(B)?;
        self.controls(C, a.rows())?;
        self.require(C, controls.bits() <= 32, "of at most 32 bits")?;
        let holds = table.elements() == GUMBEL_TABLE_LEN && table.exponent() == GUMBEL_EXPONENT && table.bits() <= 32;
        self.require(D, holds, "8224 entries of at most 32 bits, exponent 16")?;
        let places = PERTURB_EXPONENT.saturating_sub(exponent(a));
        self.require(A, (0..=MAX_PERTURB_PLACES).contains(&places), "of an exponent from -12 to 28")?;
        // SAFETY of the cast: between 0 and 40.
        let places = places as u32;
        let noise = magnitude(controls).saturating_mul(magnitude(table));
        self.accumulator(magnitude(a).saturating_mul(1u128.wrapping_shl(places)).saturating_add(noise))?;
        Ok(CheckedOperator::Perturb(Perturb {
            row: a.row(),
            bound,
            places,
            shift: self.bound_shift(1, PERTURB_EXPONENT)?,
        }))
    }

    pub(super) fn choose(&self) -> Result<CheckedOperator, OpError> {
        let (place, best) = (self.ty(A), self.ty(B));
        let parts = place.row();
        self.require(A, place.exponent() == 0, "of exponent 0")?;
        let alike = best.rows() == place.rows() && best.row() == parts;
        self.require(B, alike, "of as many and as long rows as the first operand")?;
        self.controls(C, place.rows())?;
        self.one_per_row(OUT)?;
        self.chosen_place()?;
        self.reduction(parts)?;
        let length = self.attribute(0, 1, tensorlink_types::operator::MAX_REDUCTION as i64)?;
        let reach = u128::from(parts).saturating_mul(u128::from(length.unsigned_abs()));
        self.accumulator(reach.saturating_add(magnitude(place)))?;
        Ok(CheckedOperator::Choose { parts, length })
    }

    /// A number of an element: of 32 bits and exponent 0.
    fn chosen_place(&self) -> Result<(), OpError> {
        let y = self.ty(OUT);
        self.require(OUT, y.bits() == CHOICE_BITS && y.exponent() == 0, "of 32 bits and exponent 0")
    }

    /// A threshold for each row of the first operand, which attribute 0 is added to: gives that.
    fn threshold(&self, place: Place) -> Result<i64, OpError> {
        let t = self.ty(place);
        self.one_per_row(place)?;
        self.require(place, t.exponent() == self.ty(A).exponent(), "of the first operand's exponent")?;
        let bound = self.coefficient(0)?;
        self.accumulator(magnitude(t).saturating_add(u128::from(bound.unsigned_abs())))?;
        Ok(bound)
    }

    /// A row of seven controls for each of `rows`.
    fn controls(&self, place: Place, rows: u64) -> Result<(), OpError> {
        let ty = self.ty(place);
        let holds = ty.rows() == rows && ty.row() == CONTROLS && ty.exponent() == 0;
        self.require(place, holds, "a row of seven controls for each row, of exponent 0")
    }
}
