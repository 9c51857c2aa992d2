//! Rules N-46 and N-48: elements dropped, and rounding drawn.

use super::check::{A, B, Check, OUT, exponent, magnitude};
use super::{CheckedOperator, DITHER_BITS};
use crate::error::OpError;

impl Check<'_> {
    pub(super) fn dropout(&self) -> Result<CheckedOperator, OpError> {
        self.same_shape(OUT, A)?;
        // SAFETY of the cast: at least 1.
        let keep = self.attribute(0, 1, 1 << 32)? as u64;
        let (stream, c) = (self.word(1)?, self.coefficient(2)?);
        self.accumulator(u128::from(c.unsigned_abs()).saturating_mul(magnitude(self.ty(A))))?;
        Ok(CheckedOperator::Dropout { keep, stream, c, shift: self.shift(3)? })
    }

    pub(super) fn dither(&self) -> Result<CheckedOperator, OpError> {
        let (p, z, y) = (self.ty(A), self.ty(B), self.ty(OUT));
        self.same_shape(OUT, A)?;
        self.one_per_row(B)?;
        self.require(B, z.bits() <= DITHER_BITS, "of at most 30 bits")?;
        let places = self.attribute(0, 0, 32)?;
        // SAFETY of the cast: between 0 and 32.
        let dividend = magnitude(p).saturating_mul(1u128.wrapping_shl(places as u32));
        self.accumulator(dividend.saturating_add(magnitude(z)))?;
        let expected = exponent(p).saturating_sub(exponent(z)).saturating_add(places);
        self.require(OUT, exponent(y) == expected, "of exponent e_p − e_z + bits")?;
        Ok(CheckedOperator::Dither { depth: p.row(), places: places as u32, stream: self.word(1)? })
    }
}
