//! Rules N-38 and N-39: elements combined with one that stands for a run of them.

use std::iter;

use super::check::Check;
use super::site::one;
use super::whole::rows;
use super::{Operation, Read, Site, Whole};
use crate::error::OpError;

/// Each element of a with the one of b that stands for its run.
fn runs<'a>(a: &'a [i64], b: &'a [i64], run: u64) -> impl Iterator<Item = (i64, i64)> + 'a {
    rows(a, run).zip(b).flat_map(|(run, b)| run.iter().copied().zip(iter::repeat(*b)))
}

/// `y[i] = rescale(ca·a[i] + cb·b[⌊i/r⌋], shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowCombine {
    /// The r of the rule: elements of a for each of b.
    pub run: u64,
    /// Factor of a.
    pub ca: i64,
    /// Factor of b.
    pub cb: i64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for RowCombine {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (ca, cb, shift) = check.combined()?;
        Ok(Self { run: check.run()?, ca, cb, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a, b], round) = (whole.wide()?, whole.rescale(self.shift));
        let sum = |(a, b): (i64, i64)| a.wrapping_mul(self.ca).wrapping_add(b.wrapping_mul(self.cb));
        whole.collect(runs(&a, &b, self.run).map(|pair| round.apply(sum(pair))))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (a, b) = (site.here(0)?, site.get(1, site.split(self.run).0)?);
        let sum = a.saturating_mul(self.ca.into()).saturating_add(b.saturating_mul(self.cb.into()));
        Ok(site.rescale(sum, self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index), one(1, site.split(self.run).0)])
    }
}

/// `y[i] = rescale(a[i]·b[⌊i/r⌋], shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowMul {
    /// The r of the rule: elements of a for each of b.
    pub run: u64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for RowMul {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        Ok(Self { run: check.run()?, shift: check.multiplied()? })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a, b], round) = (whole.wide()?, whole.rescale(self.shift));
        whole.collect(runs(&a, &b, self.run).map(|(a, b)| round.apply(a.wrapping_mul(b))))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (a, b) = (site.here(0)?, site.get(1, site.split(self.run).0)?);
        Ok(site.rescale(a.saturating_mul(b), self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index), one(1, site.split(self.run).0)])
    }
}
