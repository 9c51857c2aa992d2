//! Rules N-38 to N-41, N-45 and N-47: gradients of rows, heads and embeddings.

use super::check::{A, B, Check, OUT, exponent, magnitude};
use super::{CheckedOperator, Heads, MAX_GROUP, MIN_INVERSE_SHIFT, Norm, norm_places, reciprocal_exponent};
use crate::error::OpError;
use crate::fixed::MAX_SHIFT;

impl Check<'_> {
    pub(super) fn row_combine(&self) -> Result<CheckedOperator, OpError> {
        let (ca, cb, shift) = self.combined()?;
        Ok(CheckedOperator::RowCombine { run: self.run()?, ca, cb, shift })
    }

    pub(super) fn row_mul(&self) -> Result<CheckedOperator, OpError> {
        Ok(CheckedOperator::RowMul { run: self.run()?, shift: self.multiplied()? })
    }

    pub(super) fn inverse_norm(&self) -> Result<CheckedOperator, OpError> {
        self.normalisable()?;
        let (x, y) = (self.ty(A), self.ty(OUT));
        let depth = self.reduction(self.equal_parts(OUT)?)?;
        let (center, epsilon) = self.spread()?;
        let expected = reciprocal_exponent(x.bits()).saturating_sub(exponent(x)).saturating_sub(exponent(y));
        let shift = self.bound(2, self.attribute(2, MIN_INVERSE_SHIFT, MAX_SHIFT)?, expected)?;
        let places = norm_places(x.bits());
        Ok(CheckedOperator::InverseNorm(Norm { depth, places, center, epsilon, bias_shift: 0, shift }))
    }

    pub(super) fn gather_grad(&self) -> Result<CheckedOperator, OpError> {
        let (g, ids, y) = (self.ty(A), self.ty(B), self.ty(OUT));
        self.require(A, g.dims().len() == 2, "of rank 2")?;
        self.require(B, ids.exponent() == 0, "of exponent 0")?;
        self.require(B, ids.elements() >= g.row(), "at least one element for each column of the first operand")?;
        let holds = y.dims().len() == 2 && y.row() == g.rows();
        self.require(OUT, holds, "of rank 2, its rows as long as the first operand has rows")?;
        let tokens = self.reduction(g.row())?;
        self.accumulator(magnitude(g).saturating_mul(u128::from(tokens)))?;
        let shift = self.bound_shift(0, exponent(g))?;
        Ok(CheckedOperator::GatherGrad { tokens, width: y.row(), entries: y.rows(), shift })
    }

    pub(super) fn group_sum(&self) -> Result<CheckedOperator, OpError> {
        let (a, y) = (self.ty(A), self.ty(OUT));
        let (heads, width) = self.heads(a.row())?;
        self.require(A, heads.saturating_mul(width) == a.row(), "of rows that are whole heads")?;
        let kv_heads = y.row().checked_div(width).unwrap_or_default();
        let whole = kv_heads.saturating_mul(width) == y.row() && heads.checked_rem(kv_heads) == Some(0);
        self.require(OUT, whole && y.rows() == a.rows(), "as many rows of whole heads, whose count divides the heads")?;
        let share = heads.checked_div(kv_heads).unwrap_or_default();
        self.require(OUT, share <= MAX_GROUP, "one head for at most 128 of the first operand")?;
        self.accumulator(magnitude(a).saturating_mul(u128::from(share)))?;
        let shift = self.bound_shift(1, exponent(a))?;
        Ok(CheckedOperator::GroupSum(Heads { tokens: a.rows(), keys: share, heads, kv_heads, width, shift }))
    }

    pub(super) fn slice(&self) -> Result<CheckedOperator, OpError> {
        let (a, y) = (self.ty(A), self.ty(OUT));
        self.require(A, a.dims().len() == 2, "of rank 2")?;
        let holds = y.dims().len() == 2 && y.rows() == a.rows() && y.row() <= a.row();
        self.require(OUT, holds, "of rank 2, with as many rows as the first operand, no longer than they")?;
        self.same_precision()?;
        // SAFETY of the casts: a row has fewer than 2^32 elements; the offset is not negative.
        let offset = self.attribute(0, 0, a.row().saturating_sub(y.row()) as i64)? as u64;
        Ok(CheckedOperator::Slice { row: a.row(), width: y.row(), offset })
    }
}
