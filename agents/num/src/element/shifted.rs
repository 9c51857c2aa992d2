//! Rules N-49 to N-51.

use super::Site;
use crate::checked::row_shift;
use crate::error::OpError;

impl<F: Fn(usize, u64) -> Option<i64>> Site<'_, F> {
    /// Places by which the part of a row that this element stands for exceeds so many bits.
    pub(super) fn needed_shift(&self, depth: u64, bits: u32) -> Result<i128, OpError> {
        let largest = self.reduce(depth, depth, 0, |most, a| most.max(a.saturating_abs()))?;
        let length = i128::BITS.saturating_sub(largest.leading_zeros());
        Ok(length.saturating_sub(bits.saturating_sub(1)).into())
    }

    /// The shift of row m, given by an operand.
    pub(super) fn shift_of_row(&self, operand: usize, m: u64) -> Result<i64, OpError> {
        // SAFETY of the cast: a mantissa.
        Ok(row_shift(self.get(operand, m)? as i64))
    }
}
