//! Rules N-18 and N-20: functions given by tables.

use super::check::{A, B, C, Check, OUT, Visible, exponent, magnitude};
use super::site::{Cell, one, run};
use super::whole::{Rescale, blend, rows};
use super::{Operation, Read, Site, Whole};
use crate::bounds::{EXP_ARGUMENT_MAX, EXP_BITS, EXP_EXPONENT, EXP_TABLE_LEN, MAX_TABLE_LOG};
use crate::error::OpError;
use crate::fixed::{limit, rescale};

/// A piecewise-linear function; the table has `2^log + 1` entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// Binary places by which x is shifted to become the table's argument.
    pub input_shift: i64,
    /// Where the table begins.
    pub low: i64,
    /// Binary places of an argument within its cell.
    pub fraction_bits: u32,
    /// The p of a table of `2^p + 1` entries.
    pub log: u32,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for Lookup {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let table = check.ty(B);
        check.same_shape(OUT, A)?;
        let cells = table.elements().saturating_sub(1);
        let log = cells.checked_ilog2().unwrap_or(u32::MAX);
        let holds = cells.is_power_of_two() && log <= MAX_TABLE_LOG && table.bits() <= 32;
        check.require(B, holds, "2^p + 1 entries of at most 32 bits, p at most 12")?;
        let input_shift = check.shift(0)?;
        let low = check.coefficient(1)?;
        let fraction = check.attribute(2, 1, 16)?;
        check.accumulator(magnitude(check.ty(A)))?;
        let shift = check.bound_shift(3, exponent(table).saturating_add(fraction))?;
        // SAFETY of the cast: between 1 and 16.
        Ok(Self { input_shift, low, fraction_bits: fraction as u32, log, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([x, table], round) = (whole.wide()?, whole.rescale(self.shift));
        let fixed = Rescale { shift: self.input_shift, limit: limit(63) };
        let top = 1i64.wrapping_shl(self.log.wrapping_add(self.fraction_bits));
        let last = 1i64.wrapping_shl(self.log).wrapping_sub(1);
        let interpolated = |x: i64| {
            let u = fixed.apply(x).wrapping_sub(self.low).clamp(0, top);
            let j = (u >> self.fraction_bits).min(last);
            blend(&table, j, u.wrapping_sub(j << self.fraction_bits), self.fraction_bits)
        };
        whole.collect(x.into_iter().map(|x| round.apply(interpolated(x))))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let sum = site.interpolate(1, &self.cell(site)?, self.fraction_bits)?;
        Ok(site.rescale(sum, self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index), run(1, self.cell(site)?.entry, 2)])
    }
}

impl Lookup {
    fn cell(&self, site: &Site<'_>) -> Result<Cell, OpError> {
        let top = 1i128.wrapping_shl(self.log.saturating_add(self.fraction_bits));
        let x = i128::from(rescale(site.here(0)?, self.input_shift, 63));
        let u = x.saturating_sub(self.low.into()).clamp(0, top);
        let last = 1i128.wrapping_shl(self.log).saturating_sub(1);
        let j = u.wrapping_shr(self.fraction_bits).min(last);
        let rest = u.saturating_sub(j.wrapping_shl(self.fraction_bits));
        // SAFETY of the cast: 0 ≤ j < 2^12.
        Ok(Cell { entry: j as u64, rest })
    }
}

/// `y[m,k] = exp(−(max[m] − a[m,k]))`, by a table of powers of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpNeg {
    /// Length of a row.
    pub depth: u64,
    /// What a difference is multiplied by to become one of binary logarithms.
    pub multiplier: i64,
    /// Binary places then rounded away.
    pub input_shift: i64,
    /// What of its row an element sees.
    pub visible: Visible,
}

impl Operation for ExpNeg {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (a, max, table, y) = (check.ty(A), check.ty(B), check.ty(C), check.ty(OUT));
        check.same_shape(OUT, A)?;
        check.one_per_row(B)?;
        check.require(B, max.exponent() == a.exponent(), "of the first operand's exponent")?;
        let holds = table.elements() == EXP_TABLE_LEN && table.exponent() == EXP_EXPONENT && table.bits() <= 32;
        check.require(C, holds, "257 entries of at most 32 bits, exponent 24")?;
        check.require(OUT, y.bits() == EXP_BITS && y.exponent() == EXP_EXPONENT, "of 26 bits and exponent 24")?;
        let multiplier = check.attribute(0, 1, (1 << 24) - 1)?;
        let reach = magnitude(a).saturating_add(magnitude(max));
        check.accumulator(reach.saturating_mul(u128::from(multiplier.unsigned_abs())))?;
        let (input_shift, visible) = (check.shift(1)?, check.visible(2)?);
        Ok(Self { depth: a.row(), multiplier, input_shift, visible })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a, max, table], limit_of_output) = (whole.wide()?, whole.limit());
        let fixed = Rescale { shift: self.input_shift, limit: limit(63) };
        let exp = |a: i64, max: i64| {
            let z = max.wrapping_sub(a).max(0);
            let u = fixed.apply(z.wrapping_mul(self.multiplier)).min(EXP_ARGUMENT_MAX);
            let sum = blend(&table, (u & 0xffff) >> 8, u & 0xff, 8);
            Rescale { shift: (u >> 16).wrapping_add(8), limit: limit_of_output }.apply(sum)
        };
        let row = |((m, row), max): ((u64, _), &i64)| {
            let (seen, max) = (self.visible.of_row(m, self.depth), *max);
            (0u64..).zip(<[i64]>::iter(row)).map(move |(k, a)| (k < seen).then_some((*a, max)))
        };
        let pairs = (0u64..).zip(rows(&a, self.depth)).zip(&max).flat_map(row);
        whole.collect(pairs.map(|pair| pair.map_or(0, |(a, max)| exp(a, max))))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        if self.is_hidden(site) {
            return Ok(0);
        }
        let (cell, octaves) = self.cell(site)?;
        Ok(site.rescale(site.interpolate(2, &cell, 8)?, octaves.saturating_add(8)))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        if self.is_hidden(site) {
            return Ok(Vec::new());
        }
        Ok(vec![one(0, site.index), one(1, site.split(self.depth).0), run(2, self.cell(site)?.0.entry, 2)])
    }
}

impl ExpNeg {
    fn is_hidden(&self, site: &Site<'_>) -> bool {
        let (m, k) = site.split(self.depth);
        k >= self.visible.of_row(m, self.depth)
    }

    /// The cell, and by how many binary places its value is shifted on top.
    fn cell(&self, site: &Site<'_>) -> Result<(Cell, i64), OpError> {
        let (a, max) = (site.here(0)?, site.get(1, site.split(self.depth).0)?);
        let z = max.saturating_sub(a).max(0);
        let u = rescale(z.saturating_mul(self.multiplier.into()), self.input_shift, 63).min(EXP_ARGUMENT_MAX);
        // SAFETY of the cast: 0 ≤ (u mod 2^16) / 2^8 < 256.
        Ok((Cell { entry: ((u & 0xffff) >> 8) as u64, rest: (u & 0xff).into() }, u >> 16))
    }
}
