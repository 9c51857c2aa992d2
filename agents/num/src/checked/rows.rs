//! Rules N-19 to N-23, N-28 and N-31.

use tensorlink_types::operator::MAX_REDUCTION;

use super::check::{A, B, C, Check, OUT, exponent, magnitude};
use super::{
    ACCUMULATOR_BOUND, CheckedOperator, EPSILON_BOUND, EXP_BITS, EXP_EXPONENT, EXP_TABLE_LEN, MAX_BIAS_SHIFT,
    NORM_INPUT_BITS, Norm, Visible, norm_exponent, norm_places,
};
use crate::error::OpError;
use crate::fixed::limit;

/// Norm's largest accumulators, whatever bits x has: `Σ(2^f·x − μ)² + ε` with `|μ| ≤ 2^f·|x|`, and `n·gain + bias·2^t`
/// with n of two more bits than its exponent, and gain and bias of 16.
const _: () = {
    let (mut bits, vector) = (2, limit(16) as u128);
    while bits <= NORM_INPUT_BITS {
        let deviation = (limit(bits) as u128) << (norm_places(bits) + 1);
        assert!(MAX_REDUCTION as u128 * deviation * deviation + (EPSILON_BOUND as u128) < ACCUMULATOR_BOUND);
        assert!((vector << (norm_exponent(bits) + 1)) + (vector << MAX_BIAS_SHIFT) < ACCUMULATOR_BOUND);
        bits += 1;
    }
};

impl Check<'_> {
    pub(super) fn row_max(&self) -> Result<CheckedOperator, OpError> {
        let (visible, depth) = (self.visible(0)?, self.equal_parts(OUT)?);
        if visible != Visible::ALL {
            self.one_per_row(OUT)?;
        }
        self.same_precision()?;
        Ok(CheckedOperator::RowMax { depth: self.reduction(depth)?, visible })
    }

    pub(super) fn row_abs_max(&self) -> Result<CheckedOperator, OpError> {
        let depth = self.equal_parts(OUT)?;
        self.same_precision()?;
        Ok(CheckedOperator::RowAbsMax { depth: self.reduction(depth)? })
    }

    pub(super) fn row_sum(&self) -> Result<CheckedOperator, OpError> {
        let a = self.ty(A);
        let depth = self.reduction(self.equal_parts(OUT)?)?;
        self.accumulator(magnitude(a).saturating_mul(u128::from(depth)))?;
        Ok(CheckedOperator::RowSum { depth, shift: self.bound_shift(0, exponent(a))? })
    }

    pub(super) fn exp_neg(&self) -> Result<CheckedOperator, OpError> {
        let (a, max, table, y) = (self.ty(A), self.ty(B), self.ty(C), self.ty(OUT));
        self.same_shape(OUT, A)?;
        self.one_per_row(B)?;
        self.require(B, max.exponent() == a.exponent(), "of the first operand's exponent")?;
        let holds = table.elements() == EXP_TABLE_LEN && table.exponent() == EXP_EXPONENT && table.bits() <= 32;
        self.require(C, holds, "257 entries of at most 32 bits, exponent 24")?;
        self.require(OUT, y.bits() == EXP_BITS && y.exponent() == EXP_EXPONENT, "of 26 bits and exponent 24")?;
        let multiplier = self.attribute(0, 1, (1 << 24) - 1)?;
        let reach = magnitude(a).saturating_add(magnitude(max));
        self.accumulator(reach.saturating_mul(u128::from(multiplier.unsigned_abs())))?;
        let (input_shift, visible) = (self.shift(1)?, self.visible(2)?);
        Ok(CheckedOperator::ExpNeg { depth: a.row(), multiplier, input_shift, visible })
    }

    pub(super) fn normalize(&self) -> Result<CheckedOperator, OpError> {
        let (p, z, y) = (self.ty(A), self.ty(B), self.ty(OUT));
        self.same_shape(OUT, A)?;
        self.one_per_row(B)?;
        let bits = self.attribute(0, 0, 32)?;
        // SAFETY of the cast: between 0 and 32. The dividend of rule N-3 is 2·p·2^bits + z.
        let twice = magnitude(p).saturating_mul(2u128.wrapping_shl(bits as u32));
        self.accumulator(twice.saturating_add(magnitude(z)))?;
        let expected = exponent(p).saturating_sub(exponent(z)).saturating_add(bits);
        self.require(OUT, exponent(y) == expected, "of exponent e_p − e_z + bits")?;
        Ok(CheckedOperator::Normalize { depth: p.row(), bits: bits as u32 })
    }

    pub(super) fn one_hot_sub(&self) -> Result<CheckedOperator, OpError> {
        let p = self.ty(A);
        self.same_shape(OUT, A)?;
        self.one_per_row(B)?;
        let one = self.step(0)?;
        self.accumulator(magnitude(p).saturating_add(u128::from(one.unsigned_abs())))?;
        Ok(CheckedOperator::OneHotSub { depth: p.row(), one, shift: self.bound_shift(1, exponent(p))? })
    }

    pub(super) fn norm(&self) -> Result<CheckedOperator, OpError> {
        let (x, gain, bias) = (self.ty(A), self.ty(B), self.ty(C));
        self.normalisable()?;
        for place in [B, C] {
            self.at_most_16_bits(place)?;
        }
        let length = gain.elements();
        self.require(
            B,
            x.row().checked_rem(length) == Some(0),
            "as many elements as divide a row of the first operand",
        )?;
        self.require(C, bias.elements() == length, "as many elements as the second operand")?;
        self.same_shape(OUT, A)?;
        let depth = self.reduction(length)?;
        let (center, epsilon) = self.spread()?;
        let product = norm_exponent(x.bits()).saturating_add(exponent(gain));
        let bias_shift = self.attribute(2, 0, MAX_BIAS_SHIFT)?;
        self.bound(2, bias_shift, product.saturating_sub(exponent(bias)))?;
        let shift = self.bound_shift(3, product)?;
        // SAFETY of the cast: between 0 and 40.
        let (places, bias_shift) = (norm_places(x.bits()), bias_shift as u32);
        Ok(CheckedOperator::Norm(Norm { depth, places, center, epsilon, bias_shift, shift }))
    }

    /// The first operand has as many bits as N-28 and N-40 take.
    pub(super) fn normalisable(&self) -> Result<(), OpError> {
        self.require(A, self.ty(A).bits() <= NORM_INPUT_BITS, "of at most 24 bits")
    }

    /// Attributes `center` and `epsilon` of N-28 and N-40.
    pub(super) fn spread(&self) -> Result<(bool, i64), OpError> {
        Ok((self.attribute(0, 0, 1)? == 1, self.attribute(1, 1, EPSILON_BOUND.saturating_sub(1))?))
    }
}
