//! Rules N-46 and N-48: elements dropped, and rounding drawn.

use super::check::{A, B, Check, OUT, exponent, magnitude};
use super::site::one;
use super::whole::rows;
use super::{Operation, Read, Site, Whole};
use crate::bounds::{DITHER_BITS, DITHER_DRAWS, DROPOUT_DRAWS};
use crate::error::OpError;
use crate::philox::draw_element;

/// `y[i] = rescale(c·a[i], shift)` where Philox draws below `keep`, else 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dropout {
    /// Of `2^32` draws, how many keep an element.
    pub keep: i64,
    /// Which draws.
    pub stream: u32,
    /// Factor of what is kept.
    pub c: i64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for Dropout {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        check.same_shape(OUT, A)?;
        let keep = check.attribute(0, 1, 1 << 32)?;
        let (stream, c) = (check.word(1)?, check.coefficient(2)?);
        check.accumulator(u128::from(c.unsigned_abs()).saturating_mul(magnitude(check.ty(A))))?;
        Ok(Self { keep, stream, c, shift: check.shift(3)? })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a], round, context) = (whole.wide()?, whole.rescale(self.shift), whole.context);
        let word = |i| draw_element(&context.job_key, i, context.step, self.stream, DROPOUT_DRAWS);
        let kept = |i| i64::from(word(i)) < self.keep;
        let element = |(i, a): (u64, i64)| if kept(i) { round.apply(a.wrapping_mul(self.c)) } else { 0 };
        whole.collect((0..).zip(a).map(element))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        if self.is_kept(site) {
            Ok(site.rescale(site.here(0)?.saturating_mul(self.c.into()), self.shift))
        } else {
            Ok(0)
        }
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(if self.is_kept(site) { vec![one(0, site.index)] } else { Vec::new() })
    }
}

impl Dropout {
    fn is_kept(&self, site: &Site<'_>) -> bool {
        i64::from(site.word(self.stream, DROPOUT_DRAWS)) < self.keep
    }
}

/// `y[m,k] = ⌊(p[m,k]·2^bits + r) / z[m]⌋`, r drawn below `z[m]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dither {
    /// Length of a row.
    pub depth: u64,
    /// Binary places of the quotient.
    pub bits: u32,
    /// Which draws.
    pub stream: u32,
}

impl Operation for Dither {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (p, z, y) = (check.ty(A), check.ty(B), check.ty(OUT));
        check.same_shape(OUT, A)?;
        check.one_per_row(B)?;
        check.require(B, z.bits() <= DITHER_BITS, "of at most 30 bits")?;
        let bits = check.attribute(0, 0, 32)?;
        // SAFETY of the cast: between 0 and 32.
        let dividend = magnitude(p).saturating_mul(1u128.wrapping_shl(bits as u32));
        check.accumulator(dividend.saturating_add(magnitude(z)))?;
        let expected = exponent(p).saturating_sub(exponent(z)).saturating_add(bits);
        check.require(OUT, exponent(y) == expected, "of exponent e_p − e_z + bits")?;
        Ok(Self { depth: p.row(), bits: bits as u32, stream: check.word(1)? })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([p, z], limit, context) = (whole.wide()?, whole.limit(), whole.context);
        let word = |i| i64::from(draw_element(&context.job_key, i, context.step, self.stream, DITHER_DRAWS));
        let element = |(i, (p, d)): (u64, (i64, i64))| {
            let rest = word(i).wrapping_mul(d) >> 32;
            let quotient = p.wrapping_shl(self.bits).wrapping_add(rest).checked_div_euclid(d).unwrap_or_default();
            quotient.clamp(limit.wrapping_neg(), limit)
        };
        let pairs = rows(&p, self.depth).zip(&z).flat_map(|(row, z)| row.iter().map(|p| (*p, (*z).max(1))));
        whole.collect((0..).zip(pairs).map(element))
    }

    /// `⌊(p·2^bits + ⌊w·d/2^32⌋) / d⌋`.
    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (p, d) = (site.here(0)?, site.get(1, site.split(self.depth).0)?.max(1));
        let rest = i128::from(site.word(self.stream, DITHER_DRAWS)).saturating_mul(d).wrapping_shr(32);
        // The floor, the divisor being positive.
        let sum = p.saturating_mul(1i128.wrapping_shl(self.bits)).saturating_add(rest);
        Ok(site.clamp(sum.checked_div_euclid(d).unwrap_or_default()))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index), one(1, site.split(self.depth).0)])
    }
}
