//! Rules N-49 to N-51.

use super::check::{A, B, C, Check, OUT, magnitude};
use super::{CheckedOperator, MIN_SHIFTED_SHIFT};
use crate::error::OpError;
use crate::fixed::MAX_SHIFT;

impl Check<'_> {
    pub(super) fn row_shift(&self) -> Result<CheckedOperator, OpError> {
        let depth = self.reduction(self.equal_parts(OUT)?)?;
        let y = self.ty(OUT);
        self.require(OUT, y.exponent() == 0 && y.bits() >= 8, "of exponent 0 and at least 8 bits")?;
        // SAFETY of the cast: between 2 and 64.
        Ok(CheckedOperator::RowShift { depth, bits: self.attribute(0, 2, 64)? as u32 })
    }

    pub(super) fn shift_rows(&self) -> Result<CheckedOperator, OpError> {
        let a = self.ty(A);
        self.same_shape(OUT, A)?;
        self.one_per_row(B)?;
        self.require(B, self.ty(B).exponent() == 0, "of exponent 0")?;
        self.require(OUT, self.ty(OUT).exponent() == a.exponent(), "of the first operand's exponent")?;
        self.accumulator(magnitude(a))?;
        Ok(CheckedOperator::ShiftRows { depth: a.row() })
    }

    pub(super) fn shifted_mat_mul(&self) -> Result<CheckedOperator, OpError> {
        self.require(C, self.ty(C).exponent() == 0, "of exponent 0")?;
        let product = self.product_of_rows(1)?;
        self.attribute(1, MIN_SHIFTED_SHIFT, MAX_SHIFT)?;
        Ok(CheckedOperator::ShiftedMatMul(product))
    }
}
