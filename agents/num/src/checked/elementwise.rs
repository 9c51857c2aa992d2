//! Rules N-13 to N-18.

use super::check::{A, B, Check, OUT, exponent, magnitude};
use super::{CheckedOperator, Lookup, MAX_TABLE_LOG};
use crate::error::OpError;

impl Check<'_> {
    pub(super) fn combine(&self) -> Result<CheckedOperator, OpError> {
        let (ca, cb, shift) = self.combined()?;
        Ok(CheckedOperator::Combine { ca, cb, period: self.period()?, shift })
    }

    /// Both coefficients and the shift of N-13 and N-38.
    pub(super) fn combined(&self) -> Result<(i64, i64, i64), OpError> {
        self.same_shape(OUT, A)?;
        let (ca, cb) = (self.coefficient(0)?, self.coefficient(1)?);
        let term = |c: i64, place| u128::from(c.unsigned_abs()).saturating_mul(magnitude(self.ty(place)));
        self.accumulator(term(ca, A).saturating_add(term(cb, B)))?;
        Ok((ca, cb, self.shift(2)?))
    }

    pub(super) fn scale(&self) -> Result<CheckedOperator, OpError> {
        self.same_shape(OUT, A)?;
        let c = self.coefficient(0)?;
        self.accumulator(u128::from(c.unsigned_abs()).saturating_mul(magnitude(self.ty(A))))?;
        Ok(CheckedOperator::Scale { c, shift: self.shift(1)? })
    }

    pub(super) fn mul(&self) -> Result<CheckedOperator, OpError> {
        let shift = self.multiplied()?;
        Ok(CheckedOperator::Mul { period: self.period()?, shift })
    }

    /// The shift of N-15 and N-39.
    pub(super) fn multiplied(&self) -> Result<i64, OpError> {
        let (a, b) = (self.ty(A), self.ty(B));
        self.same_shape(OUT, A)?;
        self.accumulator(magnitude(a).saturating_mul(magnitude(b)))?;
        self.bound_shift(0, exponent(a).saturating_add(exponent(b)))
    }

    pub(super) fn relu(&self) -> Result<CheckedOperator, OpError> {
        self.same_shape(OUT, A)?;
        self.same_precision()?;
        Ok(CheckedOperator::Relu)
    }

    pub(super) fn relu_grad(&self) -> Result<CheckedOperator, OpError> {
        self.same_shape(B, A)?;
        self.same_shape(OUT, A)?;
        self.same_precision()?;
        Ok(CheckedOperator::ReluGrad)
    }

    pub(super) fn lookup(&self) -> Result<CheckedOperator, OpError> {
        let table = self.ty(B);
        self.same_shape(OUT, A)?;
        let cells = table.elements().saturating_sub(1);
        let log = cells.checked_ilog2().unwrap_or(u32::MAX);
        let holds = cells.is_power_of_two() && log <= MAX_TABLE_LOG && table.bits() <= 32;
        self.require(B, holds, "2^p + 1 entries of at most 32 bits, p at most 12")?;
        let input_shift = self.shift(0)?;
        let low = self.coefficient(1)?;
        let fraction = self.attribute(2, 1, 16)?;
        self.accumulator(magnitude(self.ty(A)))?;
        let shift = self.bound_shift(3, exponent(table).saturating_add(fraction))?;
        // SAFETY of the cast: between 1 and 16.
        Ok(CheckedOperator::Lookup(Lookup { input_shift, low, fraction_bits: fraction as u32, log, shift }))
    }
}
