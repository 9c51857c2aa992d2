//! Rules N-32, N-33 and N-37: places of elements, and elements at places.

use tensorlink_types::operator::MAX_REDUCTION;

use super::check::{A, B, C, Check, OUT, magnitude};
use super::controls::{Controls, rows_of_controls};
use super::site::{one, run};
use super::whole::{first_largest, rows, wide};
use super::{Operation, Read, Site, Whole};
use crate::bounds::CHOICE_BITS;
use crate::error::OpError;

/// The place of the first largest element of each equal part of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowArgMax {
    /// Elements of a part.
    pub depth: u64,
}

impl Operation for RowArgMax {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let depth = check.equal_parts(OUT)?;
        check.chosen_place()?;
        Ok(Self { depth: check.reduction(depth)? })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let [a] = whole.wide()?;
        // SAFETY of the cast: below 4096.
        whole.collect(rows(&a, self.depth).map(|part| first_largest(part) as i64))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.clamp(site.first_largest(0, site.index.saturating_mul(self.depth), self.depth)?.into()))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![run(0, site.index.saturating_mul(self.depth), self.depth)])
    }
}

/// The element at a given place of each equal part of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowPick {
    /// Elements of a part.
    pub depth: u64,
}

impl Operation for RowPick {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let depth = check.equal_parts(OUT)?;
        let as_many = check.ty(B).elements() == check.ty(OUT).elements();
        check.require(
            B,
            as_many && check.ty(B).exponent() == 0,
            "one element for each of the output, of exponent 0",
        )?;
        check.same_precision()?;
        Ok(Self { depth })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let [a, place] = whole.operands()?;
        let last = self.depth.saturating_sub(1);
        let pick = |(first, place): (u64, i64)| {
            let place = u64::try_from(place).unwrap_or(0).min(last);
            a.get(first.saturating_mul(self.depth).saturating_add(place)).unwrap_or_default()
        };
        whole.collect((0u64..).zip(wide(place)).map(pick))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.clamp(site.get(0, self.place(site)?)?))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, self.place(site)?), one(1, site.index)])
    }
}

impl RowPick {
    /// The index of the element picked.
    fn place(&self, site: &Site<'_>) -> Result<u64, OpError> {
        let last = i128::from(self.depth).saturating_sub(1).max(0);
        // SAFETY of the cast: clamped between 0 and a length.
        let place = site.here(1)?.clamp(0, last) as u64;
        Ok(site.index.saturating_mul(self.depth).saturating_add(place))
    }
}

/// The place of the first largest element of a row, from those of its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choose {
    /// Parts of a row.
    pub parts: u64,
    /// Elements of a part.
    pub length: i64,
}

impl Operation for Choose {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (place, best) = (check.ty(A), check.ty(B));
        let parts = place.row();
        check.require(A, place.exponent() == 0, "of exponent 0")?;
        let alike = best.rows() == place.rows() && best.row() == parts;
        check.require(B, alike, "of as many and as long rows as the first operand")?;
        check.controls(C, place.rows())?;
        check.one_per_row(OUT)?;
        check.chosen_place()?;
        check.reduction(parts)?;
        let length = check.attribute(0, 1, MAX_REDUCTION as i64)?;
        let reach = u128::from(parts).saturating_mul(u128::from(length.unsigned_abs()));
        check.accumulator(reach.saturating_add(magnitude(place)))?;
        Ok(Self { parts, length })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([place, best, settings], limit) = (whole.wide()?, whole.limit());
        let choice = |((place, best), [chosen, ..]): ((&[i64], &[i64]), [i64; 7])| {
            if chosen == 0 {
                return 0;
            }
            let part = first_largest(best);
            let within = place.get(part).copied().unwrap_or_default();
            // SAFETY of the cast: below 4096.
            (part as i64).wrapping_mul(self.length).wrapping_add(within).clamp(limit.wrapping_neg(), limit)
        };
        let pairs = rows(&place, self.parts).zip(rows(&best, self.parts));
        whole.collect(pairs.zip(rows_of_controls(&settings)).map(choice))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let first = site.index.saturating_mul(self.parts);
        let part = site.first_largest(1, first, self.parts)?;
        let Controls([chosen, ..]) = Controls::of_row(site, 2, site.index)?;
        let mut within = 0;
        for k in 0..self.parts {
            let place = site.get(0, first.saturating_add(k))?;
            if k == part {
                within = place;
            }
        }
        let place = i128::from(part).saturating_mul(self.length.into()).saturating_add(within);
        Ok(site.clamp(if chosen == 0 { 0 } else { place }))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        let [place, best] = [0, 1].map(|operand| run(operand, site.index.saturating_mul(self.parts), self.parts));
        Ok(vec![place, best, Controls::read(2, site.index)])
    }
}

impl Check<'_> {
    /// A number of an element: of 32 bits and exponent 0.
    fn chosen_place(&self) -> Result<(), OpError> {
        let y = self.ty(OUT);
        self.require(OUT, y.bits() == CHOICE_BITS && y.exponent() == 0, "of 32 bits and exponent 0")
    }
}
