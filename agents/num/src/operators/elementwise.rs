//! Rules N-13 to N-17: elements combined with others in the same place, or with a vector that repeats.

use super::check::{A, B, Check, OUT, exponent, magnitude};
use super::site::one;
use super::{Operation, Read, Site, Whole};
use crate::error::OpError;

/// `y[i] = rescale(ca·a[i] + cb·b[i mod |b|], shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Combine {
    /// Factor of a.
    pub ca: i64,
    /// Factor of b.
    pub cb: i64,
    /// Elements of b.
    pub period: u64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for Combine {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (ca, cb, shift) = check.combined()?;
        Ok(Self { ca, cb, period: check.period()?, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a, b], round) = (whole.wide()?, whole.rescale(self.shift));
        let sum = |(a, b): (i64, &i64)| a.wrapping_mul(self.ca).wrapping_add(b.wrapping_mul(self.cb));
        whole.collect(a.into_iter().zip(b.iter().cycle()).map(|pair| round.apply(sum(pair))))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let a = site.here(0)?.saturating_mul(self.ca.into());
        let b = site.get(1, site.split(self.period).1)?.saturating_mul(self.cb.into());
        Ok(site.rescale(a.saturating_add(b), self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index), one(1, site.split(self.period).1)])
    }
}

/// `y[i] = rescale(c·a[i], shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// The factor.
    pub c: i64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for Scale {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        check.same_shape(OUT, A)?;
        let c = check.coefficient(0)?;
        check.accumulator(u128::from(c.unsigned_abs()).saturating_mul(magnitude(check.ty(A))))?;
        Ok(Self { c, shift: check.shift(1)? })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a], round) = (whole.wide()?, whole.rescale(self.shift));
        whole.collect(a.into_iter().map(|a| round.apply(a.wrapping_mul(self.c))))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.rescale(site.here(0)?.saturating_mul(self.c.into()), self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index)])
    }
}

/// `y[i] = rescale(a[i]·b[i mod |b|], shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mul {
    /// Elements of b.
    pub period: u64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for Mul {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let shift = check.multiplied()?;
        Ok(Self { period: check.period()?, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a, b], round) = (whole.wide()?, whole.rescale(self.shift));
        whole.collect(a.into_iter().zip(b.iter().cycle()).map(|(a, b)| round.apply(a.wrapping_mul(*b))))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (a, b) = (site.here(0)?, site.get(1, site.split(self.period).1)?);
        Ok(site.rescale(a.saturating_mul(b), self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index), one(1, site.split(self.period).1)])
    }
}

/// `y[i] = max(a[i], 0)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Relu;

impl Operation for Relu {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        check.same_shape(OUT, A)?;
        check.same_precision()?;
        Ok(Self)
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let [a] = whole.wide()?;
        whole.collect(a.into_iter().map(|a| a.max(0)))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.clamp(site.here(0)?.max(0)))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index)])
    }
}

/// `y[i] = x[i] > 0 ? dy[i] : 0`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReluGrad;

impl Operation for ReluGrad {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        check.same_shape(B, A)?;
        check.same_shape(OUT, A)?;
        check.same_precision()?;
        Ok(Self)
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let [dy, x] = whole.wide()?;
        whole.collect(dy.into_iter().zip(x).map(|(dy, x)| if x > 0 { dy } else { 0 }))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (dy, x) = (site.here(0)?, site.here(1)?);
        Ok(site.clamp(if x > 0 { dy } else { 0 }))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index), one(1, site.index)])
    }
}

impl Check<'_> {
    /// Both coefficients and the shift of N-13 and N-38.
    pub(super) fn combined(&self) -> Result<(i64, i64, i64), OpError> {
        self.same_shape(OUT, A)?;
        let (ca, cb) = (self.coefficient(0)?, self.coefficient(1)?);
        let term = |c: i64, place| u128::from(c.unsigned_abs()).saturating_mul(magnitude(self.ty(place)));
        self.accumulator(term(ca, A).saturating_add(term(cb, B)))?;
        Ok((ca, cb, self.shift(2)?))
    }

    /// The shift of N-15 and N-39.
    pub(super) fn multiplied(&self) -> Result<i64, OpError> {
        let (a, b) = (self.ty(A), self.ty(B));
        self.same_shape(OUT, A)?;
        self.accumulator(magnitude(a).saturating_mul(magnitude(b)))?;
        self.bound_shift(0, exponent(a).saturating_add(exponent(b)))
    }
}
