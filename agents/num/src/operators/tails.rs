//! Rules N-34 and N-35: what of a row reaches a threshold, and thresholds raised.

use super::check::{A, B, C, Check, D, E, OUT, exponent, magnitude};
use super::controls::{Controls, rows_of_controls};
use super::site::{one, run};
use super::whole::rows;
use super::{Operation, Read, Site, Whole};
use crate::bounds::WHOLE_SHARE;
use crate::error::OpError;

/// `y = rescale(Σ_v (a[m,v] ≥ t[m] + bound ? w[m,v] or 1 : 0), shift)` of each equal part of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TailSum {
    /// Elements of a part.
    pub depth: u64,
    /// Parts of a row.
    pub parts: u64,
    /// Added to the threshold.
    pub bound: i64,
    /// Whether weights are summed, instead of ones.
    pub weighted: bool,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for TailSum {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (a, w) = (check.ty(A), check.ty(B));
        check.require(
            B,
            w.rows() == a.rows() && w.row() == a.row(),
            "of as many and as long rows as the first operand",
        )?;
        check.require(B, w.bits() <= 32, "of at most 32 bits")?;
        let bound = check.threshold(C)?;
        let depth = check.reduction(check.equal_parts(OUT)?)?;
        let weighted = check.attribute(1, 0, 1)? == 1;
        let places = if weighted { exponent(w) } else { 0 };
        let parts = a.row().checked_div(depth).unwrap_or(1);
        Ok(Self { depth, parts, bound, weighted, shift: check.bound_shift(2, places)? })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a, w, t], round) = (whole.wide()?, whole.rescale(self.shift));
        let w = if self.weighted { w } else { vec![1; a.len()] };
        let row_length = self.depth.saturating_mul(self.parts);
        let row = |((a, w), t): ((_, _), &i64)| {
            let least = t.wrapping_add(self.bound);
            let sum = move |(a, w): (&[i64], &[i64])| {
                let reached = a.iter().zip(w).filter(|(a, _)| **a >= least);
                reached.fold(0i64, |sum, (_, w)| sum.wrapping_add(*w))
            };
            rows(a, self.depth).zip(rows(w, self.depth)).map(move |part| round.apply(sum(part)))
        };
        whole.collect(rows(&a, row_length).zip(rows(&w, row_length)).zip(&t).flat_map(row))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let first = site.index.saturating_mul(self.depth);
        let least = site.get(2, site.split(self.parts).0)?.saturating_add(self.bound.into());
        let sum = (first..first.saturating_add(self.depth)).try_fold(0i128, |sum, i| {
            let unit = if self.weighted { site.get(1, i)? } else { 1 };
            Ok::<_, OpError>(if site.get(0, i)? >= least { sum.saturating_add(unit) } else { sum })
        })?;
        Ok(site.rescale(sum, self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        let part = |operand| run(operand, site.index.saturating_mul(self.depth), self.depth);
        let weights = self.weighted.then(|| part(1));
        let t = one(2, site.split(self.parts).0);
        Ok([part(0)].into_iter().chain(weights).chain([t]).collect())
    }
}

/// `y[m] = t[m] + step` where enough elements reach it, else `t[m]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threshold {
    /// Parts of a row.
    pub parts: u64,
    /// What a threshold is raised by.
    pub step: i64,
}

impl Operation for Threshold {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (t, counts, masses, totals) = (check.ty(A), check.ty(B), check.ty(C), check.ty(D));
        let rows = t.elements();
        let parts = counts.row();
        check.require(B, counts.rows() == rows, "one row for each element of the first operand")?;
        check.require(B, counts.exponent() == 0, "of exponent 0")?;
        for place in [C, D] {
            let ty = check.ty(place);
            let alike = ty.rows() == rows && ty.row() == parts;
            check.require(place, alike, "of as many and as long rows as the second operand")?;
        }
        check.require(C, masses.bits() <= 32, "of at most 32 bits")?;
        let same = totals.bits() == masses.bits() && totals.exponent() == masses.exponent();
        check.require(D, same, "of the same bits and exponent as the third operand")?;
        check.controls(E, rows)?;
        let holds = check.ty(OUT) == t;
        check.require(OUT, holds, "of the first operand's type")?;
        check.reduction(parts)?;
        let step = check.step(0)?;
        check.accumulator(magnitude(counts).saturating_mul(u128::from(parts)))?;
        check.accumulator(magnitude(t).saturating_add(u128::from(step.unsigned_abs())))?;
        // Sums of at most 4096 masses of 32 bits, times at most 2^16: far inside N-6.
        Ok(Self { parts, step })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([t, counts, masses, totals, settings], limit) = (whole.wide()?, whole.limit());
        let sum = |row: &[i64]| row.iter().fold(0i64, |sum, x| sum.wrapping_add(*x));
        let parts = |of| rows::<i64>(of, self.parts);
        let sums = parts(&counts).zip(parts(&masses).zip(parts(&totals)));
        let raised = |((t, (counts, (masses, totals))), [_, _, _, k, q, _, _]): ((&i64, _), [i64; 7])| {
            let q = q.clamp(1, WHOLE_SHARE);
            let heavy = sum(masses).wrapping_mul(WHOLE_SHARE) >= sum(totals).wrapping_mul(q);
            let enough = sum(counts) >= k.max(1) || heavy;
            if enough { t.wrapping_add(self.step).clamp(limit.wrapping_neg(), limit) } else { *t }
        };
        whole.collect(t.iter().zip(sums).zip(rows_of_controls(&settings)).map(raised))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let sum = |operand| site.sum(operand, site.index.saturating_mul(self.parts), self.parts);
        let (t, counts, masses, totals) = (site.here(0)?, sum(1)?, sum(2)?, sum(3)?);
        let Controls([_, _, _, k, q, _, _]) = Controls::of_row(site, 4, site.index)?;
        let whole = i128::from(WHOLE_SHARE);
        let heavy = masses.saturating_mul(whole) >= totals.saturating_mul(q.clamp(1, whole));
        let enough = counts >= k.max(1) || heavy;
        Ok(site.clamp(if enough { t.saturating_add(self.step.into()) } else { t }))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        let sums = [1, 2, 3].map(|operand| run(operand, site.index.saturating_mul(self.parts), self.parts));
        Ok([one(0, site.index)].into_iter().chain(sums).chain([Controls::read(4, site.index)]).collect())
    }
}
