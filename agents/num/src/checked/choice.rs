//! Rules N-24 and N-30: rows chosen by a draw or by data.

use super::check::{A, B, C, Check, OUT, exponent, magnitude};
use super::{CheckedOperator, MAX_POPULATION};
use crate::error::OpError;

impl Check<'_> {
    pub(super) fn sample(&self) -> Result<CheckedOperator, OpError> {
        let (data, y) = (self.ty(A), self.ty(OUT));
        let (population, width) = match *data.dims() {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            _ => (u32::MAX, 0),
        };
        let holds = width > 0 && u64::from(population) <= MAX_POPULATION;
        self.require(A, holds, "at most 2^31 rows, of rank 1 or 2")?;
        let batch = match (data.dims(), y.dims()) {
            ([_], [batch]) => Some(*batch),
            ([_, width], [batch, same]) if width == same => Some(*batch),
            _ => None,
        };
        self.require(OUT, batch.is_some(), "rows like the data set's")?;
        self.same_precision()?;
        // Row numbers are 32-bit counter words.
        let last = i64::from(u32::MAX).saturating_sub(i64::from(batch.unwrap_or(1))).saturating_add(1);
        let first_row = self.attribute(0, 0, last)?;
        // SAFETY of the cast: between 0 and 2^32 − 1.
        Ok(CheckedOperator::Sample { population: population.into(), width: width.into(), first_row: first_row as u32 })
    }

    pub(super) fn gather(&self) -> Result<CheckedOperator, OpError> {
        let (table, scale, ids, y) = (self.ty(A), self.ty(B), self.ty(C), self.ty(OUT));
        self.require(A, table.dims().len() == 2, "of rank 2")?;
        self.require(B, scale.elements() >= table.rows(), "at least one element for each row of the first operand")?;
        self.require(C, ids.exponent() == 0, "of exponent 0")?;
        let holds = y.dims().len() == 2 && y.row() == table.row();
        self.require(OUT, holds, "of rank 2 with rows like the first operand's")?;
        self.require(C, ids.elements() >= y.rows(), "at least one element for each row of the output")?;
        self.accumulator(magnitude(table).saturating_mul(magnitude(scale)))?;
        let shift = self.bound_shift(0, exponent(table).saturating_add(exponent(scale)))?;
        Ok(CheckedOperator::Gather { entries: table.rows(), width: table.row(), shift })
    }
}
