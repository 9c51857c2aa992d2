//! Rules N-44 and N-47: elements that are only moved.

use super::check::{A, Check, OUT};
use super::site::one;
use super::whole::{length, rows};
use super::{Operation, Read, Site, Whole};
use crate::bounds::MAX_POPULATION;
use crate::error::OpError;

/// The row of a table for the step, its last one beyond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtStep {
    /// Rows of the table.
    pub rows: u64,
    /// Their length.
    pub width: u64,
}

impl Operation for AtStep {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let table = check.ty(A);
        let (rows, width) = match *table.dims() {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            _ => (u32::MAX, 0),
        };
        let holds = width > 0 && u64::from(rows) <= MAX_POPULATION;
        check.require(A, holds, "at most 2^31 rows, of rank 1 or 2")?;
        check.output_dims(&[width.into()], "one row of the first operand")?;
        check.same_precision()?;
        Ok(Self { rows: rows.into(), width: width.into() })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let [table] = whole.operands()?;
        let first = self.first(whole.context.step);
        whole.collect((0..self.width).map(|k| table.get(first.saturating_add(k)).unwrap_or_default()))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.clamp(site.get(0, self.place(site))?))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, self.place(site))])
    }
}

impl AtStep {
    /// Where the row of a step begins.
    fn first(&self, step: u32) -> u64 {
        u64::from(step).min(self.rows.saturating_sub(1)).saturating_mul(self.width)
    }

    fn place(&self, site: &Site<'_>) -> u64 {
        self.first(site.context.step).saturating_add(site.index)
    }
}

/// `y[m,k] = a[m, offset + k]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Length of a row of a.
    pub row: u64,
    /// Length of a row of the output.
    pub width: u64,
    /// Where in a row of a it begins.
    pub offset: u64,
}

impl Operation for Slice {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (a, y) = (check.ty(A), check.ty(OUT));
        check.require(A, a.dims().len() == 2, "of rank 2")?;
        let holds = y.dims().len() == 2 && y.rows() == a.rows() && y.row() <= a.row();
        check.require(OUT, holds, "of rank 2, with as many rows as the first operand, no longer than they")?;
        check.same_precision()?;
        // SAFETY of the casts: a row has fewer than 2^32 elements; the offset is not negative.
        let offset = check.attribute(0, 0, a.row().saturating_sub(y.row()) as i64)? as u64;
        Ok(Self { row: a.row(), width: y.row(), offset })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a], offset) = (whole.wide()?, usize::try_from(self.offset).unwrap_or(usize::MAX));
        let taken = |row| <[i64]>::iter(row).skip(offset).take(length(self.width)).copied();
        whole.collect(rows(&a, self.row).flat_map(taken))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.clamp(site.get(0, self.place(site))?))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, self.place(site))])
    }
}

impl Slice {
    fn place(&self, site: &Site<'_>) -> u64 {
        let (m, k) = site.split(self.width);
        m.saturating_mul(self.row).saturating_add(self.offset).saturating_add(k)
    }
}
