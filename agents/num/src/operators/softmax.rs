//! Rules N-22 and N-23: shares of a row's sum, and their difference from a label.

use super::check::{A, B, Check, OUT, exponent, magnitude};
use super::site::one;
use super::whole::rows;
use super::{Operation, Read, Site, Whole};
use crate::error::OpError;
use crate::fixed::div;

/// `y[m,k] = round(p[m,k]·2^bits / z[m])`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Normalize {
    /// Length of a row.
    pub depth: u64,
    /// Binary places of the quotient.
    pub bits: u32,
}

impl Operation for Normalize {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (p, z, y) = (check.ty(A), check.ty(B), check.ty(OUT));
        check.same_shape(OUT, A)?;
        check.one_per_row(B)?;
        let bits = check.attribute(0, 0, 32)?;
        // SAFETY of the cast: between 0 and 32. The dividend of rule N-3 is 2·p·2^bits + z.
        let twice = magnitude(p).saturating_mul(2u128.wrapping_shl(bits as u32));
        check.accumulator(twice.saturating_add(magnitude(z)))?;
        let expected = exponent(p).saturating_sub(exponent(z)).saturating_add(bits);
        check.require(OUT, exponent(y) == expected, "of exponent e_p − e_z + bits")?;
        Ok(Self { depth: p.row(), bits: bits as u32 })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([p, z], limit) = (whole.wide()?, whole.limit());
        let quotient = |p: i64, z: i64| {
            let twice = p.wrapping_mul(1i64.wrapping_shl(self.bits.wrapping_add(1)));
            // The divisor is positive, so the Euclidean quotient is the floor.
            twice.wrapping_add(z).wrapping_div_euclid(z.wrapping_mul(2)).clamp(limit.wrapping_neg(), limit)
        };
        let pairs = rows(&p, self.depth).zip(&z).flat_map(|(row, z)| row.iter().map(move |p| (*p, (*z).max(1))));
        whole.collect(pairs.map(|(p, z)| quotient(p, z)))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (p, z) = (site.here(0)?, site.get(1, site.split(self.depth).0)?.max(1));
        // The divisor is at least 1, so there is a quotient.
        Ok(site.clamp(div(p.saturating_mul(1i128.wrapping_shl(self.bits)), z).unwrap_or_default()))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index), one(1, site.split(self.depth).0)])
    }
}

/// `y[m,k] = rescale(p[m,k] − (label[m] = k ? one : 0), shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OneHotSub {
    /// Length of a row.
    pub depth: u64,
    /// What the labelled element is less.
    pub one: i64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for OneHotSub {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let p = check.ty(A);
        check.same_shape(OUT, A)?;
        check.one_per_row(B)?;
        let one = check.step(0)?;
        check.accumulator(magnitude(p).saturating_add(u128::from(one.unsigned_abs())))?;
        Ok(Self { depth: p.row(), one, shift: check.bound_shift(1, exponent(p))? })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([p, label], round) = (whole.wide()?, whole.rescale(self.shift));
        let hits = |(row, label): (_, &i64)| {
            let label = *label;
            (0i64..).zip(<[i64]>::iter(row)).map(move |(k, p)| (*p, k == label))
        };
        let less = |(p, hit): (i64, bool)| p.wrapping_sub(if hit { self.one } else { 0 });
        whole.collect(rows(&p, self.depth).zip(&label).flat_map(hits).map(|pair| round.apply(less(pair))))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (m, k) = site.split(self.depth);
        let hit = site.get(1, m)? == i128::from(k);
        let x = site.here(0)?.saturating_sub(if hit { self.one.into() } else { 0 });
        Ok(site.rescale(x, self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index), one(1, site.split(self.depth).0)])
    }
}
