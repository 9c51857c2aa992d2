//! Rule N-24: rows of a data set drawn for a step.

use super::check::{A, Check, OUT};
use super::site::one;
use super::{Operation, Read, Site, Whole};
use crate::bounds::MAX_POPULATION;
use crate::error::OpError;
use crate::philox::draw_below;

/// `y[i,·] = data[draw(step, first_row + i), ·]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Rows of the data set.
    pub population: u64,
    /// Their length.
    pub width: u64,
    /// Number of the draw of the first row.
    pub first_row: u32,
}

impl Operation for Sample {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (data, y) = (check.ty(A), check.ty(OUT));
        let (population, width) = match *data.dims() {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            _ => (u32::MAX, 0),
        };
        let holds = width > 0 && u64::from(population) <= MAX_POPULATION;
        check.require(A, holds, "at most 2^31 rows, of rank 1 or 2")?;
        let batch = match (data.dims(), y.dims()) {
            ([_], [batch]) => Some(*batch),
            ([_, width], [batch, same]) if width == same => Some(*batch),
            _ => None,
        };
        check.require(OUT, batch.is_some(), "rows like the data set's")?;
        check.same_precision()?;
        // Row numbers are 32-bit counter words.
        let last = i64::from(u32::MAX).saturating_sub(i64::from(batch.unwrap_or(1))).saturating_add(1);
        let first_row = check.attribute(0, 0, last)?;
        // SAFETY of the cast: between 0 and 2^32 − 1.
        Ok(Self { population: population.into(), width: width.into(), first_row: first_row as u32 })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([data], context, width) = (whole.operands()?, whole.context, self.width);
        let batch = whole.operator.output.elements().checked_div(width).unwrap_or_default();
        let row = |i: u64| {
            // SAFETY of the cast: the checker keeps first_row + i below 2^32.
            let row = self.first_row.wrapping_add(i as u32);
            let drawn = draw_below(&context.job_key, row, context.step, self.population);
            (0..width).map(move |f| data.get(drawn.saturating_mul(width).saturating_add(f)).unwrap_or(0))
        };
        whole.collect((0..batch).flat_map(row))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.clamp(site.get(0, self.place(site))?))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, self.place(site))])
    }
}

impl Sample {
    fn place(&self, site: &Site<'_>) -> u64 {
        let (row, column) = site.split(self.width);
        // SAFETY of the cast: the checker keeps first_row + row below 2^32.
        let row = self.first_row.wrapping_add(row as u32);
        let drawn = draw_below(&site.context.job_key, row, site.context.step, self.population);
        drawn.saturating_mul(self.width).saturating_add(column)
    }
}
