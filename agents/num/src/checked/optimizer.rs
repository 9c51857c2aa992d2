//! Rules N-42 to N-44: ratios to roots, norms and schedules.

use super::check::{A, B, Check, OUT, exponent, magnitude};
use super::{COEFFICIENT_BOUND, CheckedOperator, MAX_POPULATION, MAX_RATIO_PLACES, MAX_SHRINK_PLACES, SHRINK_BOUND};
use crate::error::OpError;

impl Check<'_> {
    pub(super) fn ratio(&self) -> Result<CheckedOperator, OpError> {
        let (m, v, y) = (self.ty(A), self.ty(B), self.ty(OUT));
        self.same_shape(B, A)?;
        self.same_shape(OUT, A)?;
        let root_exponent = self.even_exponent(B)?;
        let places = self.attribute(0, 0, MAX_RATIO_PLACES)?;
        let floor = self.attribute(1, 1, COEFFICIENT_BOUND.saturating_sub(1))?;
        // SAFETY of the cast: between 0 and 40. The dividend of rule N-3 is 2·m·2^bits + √v + floor.
        let twice = magnitude(m).saturating_mul(2u128.wrapping_shl(places as u32));
        let divisor = magnitude(v).isqrt().saturating_add(u128::from(floor.unsigned_abs()));
        self.accumulator(twice.saturating_add(divisor))?;
        let expected = exponent(m).saturating_sub(root_exponent).saturating_add(places);
        self.require(OUT, exponent(y) == expected, "of exponent e_m − e_v/2 + bits")?;
        Ok(CheckedOperator::Ratio { places: places as u32, floor })
    }

    pub(super) fn shrink(&self) -> Result<CheckedOperator, OpError> {
        self.same_shape(OUT, A)?;
        self.even_exponent(A)?;
        let limit = self.attribute(0, 1, SHRINK_BOUND.saturating_sub(1))?;
        let places = self.attribute(1, 0, MAX_SHRINK_PLACES)?;
        self.require(OUT, exponent(self.ty(OUT)) == places, "of the exponent that bits is")?;
        // SAFETY of the cast: between 0 and 30.
        Ok(CheckedOperator::Shrink { places: places as u32, limit })
    }

    pub(super) fn at_step(&self) -> Result<CheckedOperator, OpError> {
        let table = self.ty(A);
        let (rows, width) = match *table.dims() {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            _ => (u32::MAX, 0),
        };
        let holds = width > 0 && u64::from(rows) <= MAX_POPULATION;
        self.require(A, holds, "at most 2^31 rows, of rank 1 or 2")?;
        self.output_dims(&[width.into()], "one row of the first operand")?;
        self.same_precision()?;
        Ok(CheckedOperator::AtStep { rows: rows.into(), width: width.into() })
    }
}
