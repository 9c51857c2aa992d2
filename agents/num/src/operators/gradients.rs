//! Rules N-41 and N-45: gradients of embeddings and of shared heads.

use std::iter;

use super::check::{A, B, Check, OUT, exponent, magnitude};
use super::site::{one, quotient, run};
use super::whole::{length, nth_row, rows, wide};
use super::{Operation, Read, Site, Whole};
use crate::bounds::MAX_GROUP;
use crate::error::OpError;

/// `y[v,k] = rescale(Σ_t (ids[t] = v ? g[k,t] : 0), shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GatherGrad {
    /// Length of a row of g.
    pub tokens: u64,
    /// Length of a row of the output.
    pub width: u64,
    /// Rows of the output.
    pub entries: u64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for GatherGrad {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (g, ids, y) = (check.ty(A), check.ty(B), check.ty(OUT));
        check.require(A, g.dims().len() == 2, "of rank 2")?;
        check.require(B, ids.exponent() == 0, "of exponent 0")?;
        check.require(B, ids.elements() >= g.row(), "at least one element for each column of the first operand")?;
        let holds = y.dims().len() == 2 && y.row() == g.rows();
        check.require(OUT, holds, "of rank 2, its rows as long as the first operand has rows")?;
        let tokens = check.reduction(g.row())?;
        check.accumulator(magnitude(g).saturating_mul(u128::from(tokens)))?;
        let shift = check.bound_shift(0, exponent(g))?;
        Ok(Self { tokens, width: y.row(), entries: y.rows(), shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([g, ids], round) = (whole.operands()?, whole.rescale(self.shift));
        let (g, last) = (wide(g), self.entries.saturating_sub(1));
        let entry = |t| u64::try_from(ids.get(t).unwrap_or_default()).unwrap_or(0).min(last);
        let firsts: Vec<u64> = (0..self.tokens).map(|t| entry(t).saturating_mul(self.width)).collect();
        let mut sums = whole.collect(iter::repeat_n(0, length(whole.operator.output.elements())))?;
        for (k, row) in (0u64..).zip(rows(&g, self.tokens)) {
            for (g, first) in row.iter().zip(&firsts) {
                let place = usize::try_from(first.saturating_add(k)).ok().and_then(|place| sums.get_mut(place));
                place.into_iter().for_each(|sum| *sum = sum.wrapping_add(*g));
            }
        }
        sums.iter_mut().for_each(|sum| *sum = round.apply(*sum));
        Ok(sums)
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (v, k) = site.split(self.width);
        let first = k.saturating_mul(self.tokens);
        let sum = (0..self.tokens).try_fold(0i128, |sum, t| {
            let g = site.get(0, first.saturating_add(t))?;
            Ok::<_, OpError>(if site.entry(1, self.entries, t)? == v { sum.saturating_add(g) } else { sum })
        })?;
        Ok(site.rescale(sum, self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        let k = site.split(self.width).1;
        Ok(vec![run(0, k.saturating_mul(self.tokens), self.tokens), run(1, 0, self.tokens)])
    }
}

/// `y[t,g,d] = rescale(Σ_h a[t,h,d], shift)` over the heads of group g.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupSum {
    /// Heads of a row of a.
    pub heads: u64,
    /// Groups: heads of a row of the output.
    pub groups: u64,
    /// Heads of a group.
    pub share: u64,
    /// Elements of a head.
    pub width: u64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for GroupSum {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (a, y) = (check.ty(A), check.ty(OUT));
        let (heads, width) = check.heads(a.row())?;
        check.require(A, heads.saturating_mul(width) == a.row(), "of rows that are whole heads")?;
        let groups = y.row().checked_div(width).unwrap_or_default();
        let whole = groups.saturating_mul(width) == y.row() && heads.checked_rem(groups) == Some(0);
        check.require(
            OUT,
            whole && y.rows() == a.rows(),
            "as many rows of whole heads, whose count divides the heads",
        )?;
        let share = heads.checked_div(groups).unwrap_or_default();
        check.require(OUT, share <= MAX_GROUP, "one head for at most 128 of the first operand")?;
        check.accumulator(magnitude(a).saturating_mul(u128::from(share)))?;
        let shift = check.bound_shift(1, exponent(a))?;
        Ok(Self { heads, groups, share, width, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a], round) = (whole.wide()?, whole.rescale(self.shift));
        // A group's heads lie side by side.
        let group = |heads_of: &[i64]| -> Vec<i64> {
            let mut sums = nth_row(heads_of, 0, self.width).to_vec();
            for head in rows(heads_of, self.width).skip(1) {
                sums.iter_mut().zip(head).for_each(|(sum, a)| *sum = sum.wrapping_add(*a));
            }
            sums
        };
        let groups = rows(&a, self.share.saturating_mul(self.width));
        whole.collect(groups.flat_map(group).map(|sum| round.apply(sum)))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let sum =
            self.places(site).try_fold(0i128, |sum, place| Ok::<_, OpError>(sum.saturating_add(site.get(0, place)?)));
        Ok(site.rescale(sum?, self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(self.places(site).map(|place| one(0, place)).collect())
    }
}

impl GroupSum {
    /// Where the elements lie that are added.
    fn places(&self, site: &Site<'_>) -> impl Iterator<Item = u64> + use<> {
        let Self { heads, groups, share, width, .. } = *self;
        let (t, column) = site.split(groups.saturating_mul(width));
        let (g, d) = quotient(column, width);
        let head = move |h: u64| t.saturating_mul(heads).saturating_add(g.saturating_mul(share)).saturating_add(h);
        (0..share).map(move |h| head(h).saturating_mul(width).saturating_add(d))
    }
}
