//! Rule N-30: rows of a table chosen by ids.

use super::check::{A, B, C, Check, OUT, exponent, magnitude};
use super::site::one;
use super::{Operation, Read, Site, Whole};
use crate::error::OpError;

/// `y[t,k] = rescale(table[ids[t],k]·scale[ids[t]], shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gather {
    /// Rows of the table.
    pub entries: u64,
    /// Their length.
    pub width: u64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for Gather {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (table, scale, ids, y) = (check.ty(A), check.ty(B), check.ty(C), check.ty(OUT));
        check.require(A, table.dims().len() == 2, "of rank 2")?;
        check.require(B, scale.elements() >= table.rows(), "at least one element for each row of the first operand")?;
        check.require(C, ids.exponent() == 0, "of exponent 0")?;
        let holds = y.dims().len() == 2 && y.row() == table.row();
        check.require(OUT, holds, "of rank 2 with rows like the first operand's")?;
        check.require(C, ids.elements() >= y.rows(), "at least one element for each row of the output")?;
        check.accumulator(magnitude(table).saturating_mul(magnitude(scale)))?;
        let shift = check.bound_shift(0, exponent(table).saturating_add(exponent(scale)))?;
        Ok(Self { entries: table.rows(), width: table.row(), shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([table, scale, ids], round) = (whole.operands()?, whole.rescale(self.shift));
        let Self { entries, width, .. } = *self;
        let tokens = whole.operator.output.elements().checked_div(width).unwrap_or_default();
        let row = |t: u64| {
            let id = u64::try_from(ids.get(t).unwrap_or_default()).unwrap_or(0);
            let entry = id.min(entries.saturating_sub(1));
            let (first, scale) = (entry.saturating_mul(width), scale.get(entry).unwrap_or_default());
            let mantissa = move |k| table.get(first.saturating_add(k)).unwrap_or_default();
            (0..width).map(move |k| round.apply(mantissa(k).wrapping_mul(scale)))
        };
        whole.collect((0..tokens).flat_map(row))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (t, k) = site.split(self.width);
        let entry = site.entry(2, self.entries, t)?;
        let mantissa = site.get(0, entry.saturating_mul(self.width).saturating_add(k))?;
        Ok(site.rescale(mantissa.saturating_mul(site.get(1, entry)?), self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        let (t, k) = site.split(self.width);
        let entry = site.entry(2, self.entries, t)?;
        Ok(vec![one(0, entry.saturating_mul(self.width).saturating_add(k)), one(1, entry), one(2, t)])
    }
}
