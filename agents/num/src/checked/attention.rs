//! Rules N-26, N-27 and N-29.

use super::check::{A, B, Check, OUT, exponent, magnitude};
use super::{CheckedOperator, Heads, MAX_ROPE_EXPONENT, Rope};
use crate::error::OpError;

impl Check<'_> {
    pub(super) fn head_scores(&self) -> Result<CheckedOperator, OpError> {
        let (q, k) = (self.ty(A), self.ty(B));
        self.factors([(A, 2), (B, 2)])?;
        let (heads, width) = self.heads(q.row())?;
        self.require(A, heads.saturating_mul(width) == q.row(), "of rows that are whole heads")?;
        let kv_heads = self.kv_heads(k.row(), heads, width, "of rows of whole heads, as many as divide the first's")?;
        self.output_dims(&[heads, q.rows(), k.rows()], "heads by rows of the first operand by rows of the second")?;
        let shift = self.products(width)?;
        Ok(CheckedOperator::HeadScores(Heads { tokens: q.rows(), keys: k.rows(), heads, kv_heads, width, shift }))
    }

    pub(super) fn head_mix(&self) -> Result<CheckedOperator, OpError> {
        let (p, v, y) = (self.ty(A), self.ty(B), self.ty(OUT));
        self.factors([(A, 3), (B, 2)])?;
        let (heads, width) = self.heads(y.row())?;
        let (tokens, keys) = match *p.dims() {
            [h, t, s] if u64::from(h) == heads => (u64::from(t), u64::from(s)),
            _ => (0, 0),
        };
        self.require(A, keys > 0, "as many matrices as there are heads")?;
        self.require(B, v.row() == keys, "of rows as long as the first operand's")?;
        let whole = [tokens, heads.saturating_mul(width)];
        self.output_dims(&whole, "rows of one head of the first operand by whole heads")?;
        let kv_heads =
            self.kv_heads(v.rows(), heads, width, "as many rows as whole heads, whose count divides the heads")?;
        let shift = self.products(keys)?;
        Ok(CheckedOperator::HeadMix(Heads { tokens, keys, heads, kv_heads, width, shift }))
    }

    pub(super) fn rope(&self) -> Result<CheckedOperator, OpError> {
        let (x, table) = (self.ty(A), self.ty(B));
        self.at_most_16_bits(A)?;
        self.at_most_16_bits(B)?;
        let (heads, width) = self.heads(x.row())?;
        self.require(A, heads.saturating_mul(width) == x.row(), "of rows that are whole heads")?;
        let even = table.row().is_multiple_of(2);
        self.require(B, even && table.row() <= width, "of rows of even length, no longer than a head")?;
        self.require(B, table.rows() >= x.rows(), "at least as many rows as the first operand")?;
        let exponent_holds = (0..=MAX_ROPE_EXPONENT).contains(&table.exponent());
        self.require(B, exponent_holds, "of an exponent from 0 to 15")?;
        self.same_shape(OUT, A)?;
        let shift = self.bound_shift(1, exponent(x).saturating_add(exponent(table)))?;
        let half = table.row().checked_div(2).unwrap_or_default();
        let exponent = u32::from(table.exponent().unsigned_abs());
        // At most 2·2^15·2^15 by the bits above: far inside N-6.
        Ok(CheckedOperator::Rope(Rope { row: x.row(), width, half, exponent, shift }))
    }

    /// The attribute `heads`, at most `row`, and the elements of a head in such a row, rounded down.
    pub(super) fn heads(&self, row: u64) -> Result<(u64, u64), OpError> {
        // SAFETY of the casts: a row has fewer than 2^32 elements; heads are positive.
        let heads = self.attribute(0, 1, row as i64)? as u64;
        Ok((heads, row.checked_div(heads).unwrap_or_default()))
    }

    /// How many key/value heads of `width` make `length` of the second operand: their number divides the heads.
    fn kv_heads(&self, length: u64, heads: u64, width: u64, requirement: &'static str) -> Result<u64, OpError> {
        let kv_heads = length.checked_div(width).unwrap_or_default();
        let whole = kv_heads.saturating_mul(width) == length;
        self.require(B, whole && heads.checked_rem(kv_heads) == Some(0), requirement)?;
        Ok(kv_heads)
    }

    /// Bounds of `depth` products of the two operands; the shift of attribute 1.
    fn products(&self, depth: u64) -> Result<i64, OpError> {
        let (a, b) = (self.ty(A), self.ty(B));
        let depth = self.reduction(depth)?;
        self.accumulator(magnitude(a).saturating_mul(magnitude(b)).saturating_mul(u128::from(depth)))?;
        self.bound_shift(1, exponent(a).saturating_add(exponent(b)))
    }
}
