//! Rules N-49 to N-51: rows shifted by places of their own, and products of them.

use super::check::{A, B, C, Check, OUT, magnitude};
use super::linear::{Finish, RowProduct};
use super::site::{one, run};
use super::whole::{rows, wide};
use super::{Operation, Read, Site, Whole};
use crate::bounds::{MIN_SHIFTED_SHIFT, row_shift};
use crate::error::OpError;
use crate::fixed::MAX_SHIFT;

/// By how many places a row is shifted so that its elements have so many bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowShift {
    /// Elements for each of the output.
    pub depth: u64,
    /// Bits wanted.
    pub bits: u32,
}

impl Operation for RowShift {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let depth = check.reduction(check.equal_parts(OUT)?)?;
        let y = check.ty(OUT);
        check.require(OUT, y.exponent() == 0 && y.bits() >= 8, "of exponent 0 and at least 8 bits")?;
        // SAFETY of the cast: between 2 and 64.
        Ok(Self { depth, bits: check.attribute(0, 2, 64)? as u32 })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let [a] = whole.wide()?;
        let shift = |row: &[i64]| {
            let largest = row.iter().map(|a| a.unsigned_abs()).max().unwrap_or_default();
            let length = u64::BITS.saturating_sub(largest.leading_zeros());
            i64::from(length.saturating_sub(self.bits.saturating_sub(1)))
        };
        whole.collect(rows(&a, self.depth).map(shift))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let largest = site.reduce(self.depth, self.depth, 0, |most, a| most.max(a.saturating_abs()))?;
        let length = i128::BITS.saturating_sub(largest.leading_zeros());
        Ok(site.clamp(length.saturating_sub(self.bits.saturating_sub(1)).into()))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![run(0, site.index.saturating_mul(self.depth), self.depth)])
    }
}

/// The shift of row m, given by an operand.
fn shift_of_row(site: &Site<'_>, operand: usize, m: u64) -> Result<i64, OpError> {
    // SAFETY of the cast: a mantissa.
    Ok(row_shift(site.get(operand, m)? as i64))
}

/// `y[m,k] = rescale(a[m,k], s[m])`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShiftRows {
    /// Length of a row.
    pub depth: u64,
}

impl Operation for ShiftRows {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let a = check.ty(A);
        check.same_shape(OUT, A)?;
        check.one_per_row(B)?;
        check.require(B, check.ty(B).exponent() == 0, "of exponent 0")?;
        check.require(OUT, check.ty(OUT).exponent() == a.exponent(), "of the first operand's exponent")?;
        check.accumulator(magnitude(a))?;
        Ok(Self { depth: a.row() })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let [a, s] = whole.wide()?;
        let row = |(row, s): (_, i64)| {
            let round = whole.rescale(row_shift(s));
            <[i64]>::iter(row).map(move |a| round.apply(*a))
        };
        whole.collect(rows(&a, self.depth).zip(s).flat_map(row))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.rescale(site.here(0)?, shift_of_row(site, 1, site.split(self.depth).0)?))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, site.index), one(1, site.split(self.depth).0)])
    }
}

/// `y[m,n] = rescale(c[n]·Σ_k a[m, offset + k]·b[n,k], shift − s[m])`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShiftedMatMul {
    /// What is summed.
    pub product: RowProduct,
    /// Binary places rounded away, before the row's own are given back.
    pub shift: i64,
}

impl Operation for ShiftedMatMul {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        check.require(C, check.ty(C).exponent() == 0, "of exponent 0")?;
        let (product, shift) = check.product_of_rows(1)?;
        check.attribute(1, MIN_SHIFTED_SHIFT, MAX_SHIFT)?;
        Ok(Self { product, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let [a, b, s, c] = whole.operands()?;
        let of_row = |s| (1, whole.rescale(self.shift.wrapping_sub(row_shift(s))));
        let finish: Vec<Finish> = wide(s).into_iter().map(of_row).collect();
        self.product.execute(whole, [a, b, c], &finish)
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (m, n) = site.split(self.product.columns);
        let shift = self.shift.saturating_sub(shift_of_row(site, 2, m)?);
        Ok(site.rescale(site.get(3, n)?.saturating_mul(site.dot(&self.product.runs(site))?), shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(self.product.reads(site))
    }
}
