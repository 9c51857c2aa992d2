//! Rules N-19, N-21 and N-31: the largest of a row, and its sum.

use super::check::{A, Check, OUT, Visible, exponent, magnitude};
use super::site::run;
use super::whole::rows;
use super::{Operation, Read, Site, Whole};
use crate::error::OpError;

/// `y[m] = max_k a[m,k]` over what a row may see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowMax {
    /// Elements of which each of the output is the largest.
    pub depth: u64,
    /// What a row sees of itself.
    pub visible: Visible,
}

impl Operation for RowMax {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (visible, depth) = (check.visible(0)?, check.equal_parts(OUT)?);
        if visible != Visible::ALL {
            check.one_per_row(OUT)?;
        }
        check.same_precision()?;
        Ok(Self { depth: check.reduction(depth)?, visible })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let [a] = whole.wide()?;
        let max = |(m, row): (u64, &[i64])| {
            let seen = row.iter().zip(0..self.visible.of_row(m, self.depth));
            seen.map(|(a, _)| *a).max().unwrap_or_default()
        };
        whole.collect((0u64..).zip(rows(&a, self.depth)).map(max))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let seen = self.visible.of_row(site.index, self.depth);
        Ok(site.clamp(site.reduce(self.depth, seen, i128::MIN, i128::max)?))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        let seen = self.visible.of_row(site.index, self.depth);
        Ok(vec![run(0, site.index.saturating_mul(self.depth), seen)])
    }
}

/// `y[m] = max_k |a[m,k]|`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowAbsMax {
    /// Elements of which each of the output is the largest.
    pub depth: u64,
}

impl Operation for RowAbsMax {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let depth = check.equal_parts(OUT)?;
        check.same_precision()?;
        Ok(Self { depth: check.reduction(depth)? })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let [a] = whole.wide()?;
        let largest = |row: &[i64]| row.iter().map(|a| a.saturating_abs()).max().unwrap_or_default();
        whole.collect(rows(&a, self.depth).map(largest))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.clamp(site.reduce(self.depth, self.depth, 0, |max, a| max.max(a.saturating_abs()))?))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![run(0, site.index.saturating_mul(self.depth), self.depth)])
    }
}

/// `y[m] = rescale(Σ_k a[m,k], shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowSum {
    /// Elements of which each of the output is the sum.
    pub depth: u64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for RowSum {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let a = check.ty(A);
        let depth = check.reduction(check.equal_parts(OUT)?)?;
        check.accumulator(magnitude(a).saturating_mul(u128::from(depth)))?;
        Ok(Self { depth, shift: check.bound_shift(0, exponent(a))? })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a], round) = (whole.wide()?, whole.rescale(self.shift));
        let sum = |row: &[i64]| row.iter().fold(0i64, |sum, a| sum.wrapping_add(*a));
        whole.collect(rows(&a, self.depth).map(|row| round.apply(sum(row))))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.rescale(site.reduce(self.depth, self.depth, 0, i128::saturating_add)?, self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![run(0, site.index.saturating_mul(self.depth), self.depth)])
    }
}
