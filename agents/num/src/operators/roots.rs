//! Rules N-42 and N-43: quotients by roots, for optimisers.

use super::check::{A, B, Check, OUT, exponent, magnitude};
use super::site::one;
use super::{Operation, Read, Site, Whole};
use crate::bounds::{COEFFICIENT_BOUND, MAX_RATIO_PLACES, MAX_SHRINK_PLACES, SHRINK_BOUND};
use crate::error::OpError;
use crate::fixed::div;

/// `y[i] = round(m[i]·2^bits / (⌊√v[i]⌋ + floor))`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ratio {
    /// Binary places of the quotient.
    pub bits: u32,
    /// Added to the root.
    pub floor: i64,
}

impl Operation for Ratio {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (m, v, y) = (check.ty(A), check.ty(B), check.ty(OUT));
        check.same_shape(B, A)?;
        check.same_shape(OUT, A)?;
        let root_exponent = check.even_exponent(B)?;
        let bits = check.attribute(0, 0, MAX_RATIO_PLACES)?;
        let floor = check.attribute(1, 1, COEFFICIENT_BOUND.saturating_sub(1))?;
        // SAFETY of the cast: between 0 and 40. The dividend of rule N-3 is 2·m·2^bits + √v + floor.
        let twice = magnitude(m).saturating_mul(2u128.wrapping_shl(bits as u32));
        let divisor = magnitude(v).isqrt().saturating_add(u128::from(floor.unsigned_abs()));
        check.accumulator(twice.saturating_add(divisor))?;
        let expected = exponent(m).saturating_sub(root_exponent).saturating_add(bits);
        check.require(OUT, exponent(y) == expected, "of exponent e_m − e_v/2 + bits")?;
        Ok(Self { bits: bits as u32, floor })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([m, v], limit) = (whole.wide()?, whole.limit());
        let ratio = |(m, v): (i64, i64)| {
            let divisor = v.max(0).isqrt().wrapping_add(self.floor);
            let dividend = m.wrapping_shl(self.bits.wrapping_add(1)).wrapping_add(divisor);
            let quotient = dividend.checked_div_euclid(divisor.wrapping_mul(2)).unwrap_or_default();
            quotient.clamp(limit.wrapping_neg(), limit)
        };
        whole.collect(m.into_iter().zip(v).map(ratio))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (m, v) = (site.here(0)?, site.here(1)?);
        let divisor = v.max(0).isqrt().saturating_add(self.floor.into());
        // The divisor is at least 1, so there is a quotient.
        Ok(site.clamp(div(m.saturating_mul(1i128.wrapping_shl(self.bits)), divisor).unwrap_or_default()))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index), one(1, site.index)])
    }
}

/// `y[i] = min(2^bits, ⌊limit·2^bits / √s[i]⌋)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shrink {
    /// What a norm is brought down to.
    pub limit: i64,
    /// Binary places of the quotient.
    pub bits: u32,
}

impl Operation for Shrink {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        check.same_shape(OUT, A)?;
        check.even_exponent(A)?;
        let limit = check.attribute(0, 1, SHRINK_BOUND.saturating_sub(1))?;
        let bits = check.attribute(1, 0, MAX_SHRINK_PLACES)?;
        check.require(OUT, exponent(check.ty(OUT)) == bits, "of the exponent that bits is")?;
        // SAFETY of the cast: between 0 and 30.
        Ok(Self { limit, bits: bits as u32 })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([s], one, limit) = (whole.wide()?, 1i64.wrapping_shl(self.bits), whole.limit());
        let share = |s: i64| one.wrapping_mul(self.limit).checked_div(s.max(0).isqrt().max(1)).unwrap_or_default();
        whole.collect(s.into_iter().map(|s| one.min(share(s)).min(limit)))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let one = 1i128.wrapping_shl(self.bits);
        let root = site.here(0)?.max(0).isqrt().max(1);
        Ok(site.clamp(one.min(one.saturating_mul(self.limit.into()).checked_div(root).unwrap_or_default())))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index)])
    }
}
