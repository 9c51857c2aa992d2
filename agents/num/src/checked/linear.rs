//! Rules N-11, N-12 and N-25, and the products of N-51.

use super::check::{A, B, C, Check, D, OUT, exponent, magnitude};
use super::{CheckedOperator, ScaledMatMul};
use crate::error::OpError;

impl Check<'_> {
    pub(super) fn mat_mul(&self) -> Result<CheckedOperator, OpError> {
        let (a, b) = (self.ty(A), self.ty(B));
        self.factors([(A, 2), (B, 2)])?;
        self.require(B, a.row() == b.row(), "of rows as long as the first operand's")?;
        self.output_dims(&[a.rows(), b.rows()], "rows of the first operand by rows of the second")?;
        let depth = self.reduction(a.row())?;
        self.accumulator(magnitude(a).saturating_mul(magnitude(b)).saturating_mul(u128::from(depth)))?;
        let shift = self.bound_shift(0, exponent(a).saturating_add(exponent(b)))?;
        Ok(CheckedOperator::MatMul { columns: b.rows(), depth, shift })
    }

    pub(super) fn scaled_mat_mul(&self) -> Result<CheckedOperator, OpError> {
        Ok(CheckedOperator::ScaledMatMul(self.product_of_rows(magnitude(self.ty(C)))?))
    }

    /// What N-25 and N-51 share: `Σ_k a[m, offset + k]·b[n,k]` times `c[n]`, and a number for each row of a that is at
    /// most `factor`.
    pub(super) fn product_of_rows(&self, factor: u128) -> Result<ScaledMatMul, OpError> {
        let (a, b, r, c) = (self.ty(A), self.ty(B), self.ty(C), self.ty(D));
        self.mixed_factors([(A, 2), (B, 2)])?;
        self.require(B, b.row() <= a.row(), "of rows no longer than the first operand's")?;
        self.require(C, r.elements() == a.rows(), "one element for each row of the first operand")?;
        self.require(D, c.elements() == b.rows(), "one element for each row of the second operand")?;
        self.output_dims(&[a.rows(), b.rows()], "rows of the first operand by rows of the second")?;
        let depth = self.reduction(b.row())?;
        // SAFETY of the casts: a row has fewer than 2^32 elements; the offset is not negative.
        let offset = self.attribute(0, 0, a.row().saturating_sub(depth) as i64)? as u64;
        let sum = magnitude(a).saturating_mul(magnitude(b)).saturating_mul(u128::from(depth));
        self.accumulator(sum.saturating_mul(factor).saturating_mul(magnitude(c)))?;
        let exponents = [a, b, r, c].into_iter().fold(0i64, |sum, ty| sum.saturating_add(exponent(ty)));
        let shift = self.bound_shift(1, exponents)?;
        Ok(ScaledMatMul { columns: b.rows(), row: a.row(), offset, depth, shift })
    }

    pub(super) fn transpose(&self) -> Result<CheckedOperator, OpError> {
        let a = self.ty(A);
        let (rows, holds) = match (a.dims(), self.ty(OUT).dims()) {
            (&[m, n], &[p, q]) => (m, [m, n] == [q, p]),
            (&[batch, m, n], &[same, p, q]) => (m, [batch, m, n] == [same, q, p]),
            ([_, _] | [_, _, _], _) => (1, false),
            _ => (0, false),
        };
        self.require(A, rows > 0, "of rank 2 or 3")?;
        self.require(OUT, holds, "the first operand's shape with its last two dimensions exchanged")?;
        self.same_precision()?;
        Ok(CheckedOperator::Transpose { rows: rows.into(), columns: a.row() })
    }
}
