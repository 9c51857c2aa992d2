//! Rule N-29: elements turned by their token's position.

use super::check::{A, B, Check, OUT, exponent};
use super::site::one;
use super::whole::{nth_row, rows};
use super::{Operation, Read, Site, Whole};
use crate::bounds::MAX_ROPE_EXPONENT;
use crate::error::OpError;

/// Rows of `row` elements in heads of `width`, of which the first `2·half` rotate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rope {
    /// Length of a row.
    pub row: u64,
    /// Elements of a head.
    pub width: u64,
    /// Pairs of a head that rotate.
    pub half: u64,
    /// Exponent of the table.
    pub exponent: u32,
    /// Binary places rounded away.
    pub shift: i64,
}

/// Two elements of a row that rotate together, and what they rotate by.
struct Turn {
    low: u64,
    high: u64,
    cosine: u64,
    sine: u64,
}

impl Operation for Rope {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (x, table) = (check.ty(A), check.ty(B));
        check.at_most_16_bits(A)?;
        check.at_most_16_bits(B)?;
        let (heads, width) = check.heads(x.row())?;
        check.require(A, heads.saturating_mul(width) == x.row(), "of rows that are whole heads")?;
        let even = table.row().is_multiple_of(2);
        check.require(B, even && table.row() <= width, "of rows of even length, no longer than a head")?;
        check.require(B, table.rows() >= x.rows(), "at least as many rows as the first operand")?;
        let exponent_holds = (0..=MAX_ROPE_EXPONENT).contains(&table.exponent());
        check.require(B, exponent_holds, "of an exponent from 0 to 15")?;
        check.same_shape(OUT, A)?;
        let shift = check.bound_shift(1, exponent(x).saturating_add(exponent(table)))?;
        let half = table.row().checked_div(2).unwrap_or_default();
        let exponent = u32::from(table.exponent().unsigned_abs());
        // At most 2·2^15·2^15 by the bits above: far inside N-6.
        Ok(Self { row: x.row(), width, half, exponent, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([x, table], round) = (whole.wide()?, whole.rescale(self.shift));
        let half = usize::try_from(self.half).unwrap_or(usize::MAX);
        let head = |head: &[i64], cosines: &[i64], sines: &[i64]| -> Vec<i64> {
            let (low, rest) = head.split_at_checked(half).unwrap_or_default();
            let (high, rest) = rest.split_at_checked(half).unwrap_or_default();
            let turns = || low.iter().zip(high).zip(cosines.iter().zip(sines));
            let lows = turns().map(|((l, h), (c, s))| l.wrapping_mul(*c).wrapping_sub(h.wrapping_mul(*s)));
            let highs = turns().map(|((l, h), (c, s))| h.wrapping_mul(*c).wrapping_add(l.wrapping_mul(*s)));
            lows.chain(highs).chain(rest.iter().map(|x| x.wrapping_shl(self.exponent))).collect()
        };
        let row = |(row, turns)| {
            let (cosines, sines) = (nth_row(turns, 0, self.half), nth_row(turns, 1, self.half));
            rows(row, self.width).flat_map(move |x| head(x, cosines, sines))
        };
        let pairs = rows(&x, self.row).zip(rows(&table, self.half.saturating_mul(2)));
        whole.collect(pairs.flat_map(row).map(|x| round.apply(x)))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let Some(turn) = self.turn(site) else {
            return Ok(site.rescale(site.here(0)?.saturating_mul(1i128.wrapping_shl(self.exponent)), self.shift));
        };
        let (low, high) = (site.get(0, turn.low)?, site.get(0, turn.high)?);
        let (cosine, sine) = (site.get(1, turn.cosine)?, site.get(1, turn.sine)?);
        let x = if site.index == turn.low {
            low.saturating_mul(cosine).saturating_sub(high.saturating_mul(sine))
        } else {
            high.saturating_mul(cosine).saturating_add(low.saturating_mul(sine))
        };
        Ok(site.rescale(x, self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(match self.turn(site) {
            None => vec![one(0, site.index)],
            Some(turn) => vec![one(0, turn.low), one(0, turn.high), one(1, turn.cosine), one(1, turn.sine)],
        })
    }
}

impl Rope {
    /// The pair that the element rotates with; none where it lies beyond the rotating part of its head.
    fn turn(&self, site: &Site<'_>) -> Option<Turn> {
        let (t, column) = site.split(self.row);
        let i = column.checked_rem(self.width)?;
        let rotating = self.half.saturating_mul(2);
        if i >= rotating {
            return None;
        }
        let j = i.checked_rem(self.half)?;
        let low = site.index.saturating_sub(i).saturating_add(j);
        let cosine = t.saturating_mul(rotating).saturating_add(j);
        Some(Turn { low, high: low.saturating_add(self.half), cosine, sine: cosine.saturating_add(self.half) })
    }
}
