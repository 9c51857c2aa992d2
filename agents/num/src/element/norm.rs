//! Rules N-28 and N-40.

use super::Site;
use crate::checked::{Norm, RECIPROCAL_EXPONENT};
use crate::error::OpError;
use crate::fixed::{div, rescale};

/// Mean (times `2^f`), R and j of rule N-28.
struct Spread {
    mean: i128,
    reciprocal: i128,
    j: i64,
}

impl<F: Fn(usize, u64) -> Option<i64>> Site<'_, F> {
    /// `n·gain[k] + bias[k]·2^t`.
    pub(super) fn norm(&self, norm: &Norm) -> Result<i128, OpError> {
        let (m, k) = self.split(norm.depth);
        let Spread { mean, reciprocal, j } = self.spread(m.saturating_mul(norm.depth), norm)?;
        let centered = self.get(0, self.index)?.saturating_mul(norm.unit().into()).saturating_sub(mean);
        let n = rescale(centered.saturating_mul(reciprocal), norm.reciprocal_shift().saturating_sub(j), norm.bits());
        let n = i128::from(n);
        let bias = self.get(2, k)?.saturating_mul(1i128.wrapping_shl(norm.bias_shift));
        Ok(n.saturating_mul(self.get(1, k)?).saturating_add(bias))
    }

    /// `rescale(R, shift − j)`.
    pub(super) fn inverse_norm(&self, norm: &Norm) -> Result<i64, OpError> {
        let Spread { reciprocal, j, .. } = self.spread(self.index.saturating_mul(norm.depth), norm)?;
        Ok(rescale(reciprocal, norm.shift.saturating_sub(j), self.operator.output.bits()))
    }

    /// Of the elements from `first` on.
    fn spread(&self, first: u64, norm: &Norm) -> Result<Spread, OpError> {
        let length = i128::from(norm.depth);
        let (mut sum, mut squares) = (0i128, 0i128);
        for k in 0..norm.depth {
            let x = self.get(0, first.saturating_add(k))?;
            sum = sum.saturating_add(x);
            squares = squares.saturating_add(x.saturating_mul(x));
        }
        let unit = i128::from(norm.unit());
        let mean = if norm.center { div(sum.saturating_mul(unit), length).unwrap_or_default() } else { 0 };
        let cross = mean.saturating_mul(sum).saturating_mul(unit).saturating_mul(2);
        let v = squares.saturating_mul(unit).saturating_mul(unit).saturating_sub(cross);
        let v = v.saturating_add(length.saturating_mul(mean).saturating_mul(mean)).saturating_add(norm.epsilon.into());
        // A sum of squares and epsilon: from 1 to below 2^62.
        let bits = 128u32.saturating_sub(v.leading_zeros());
        let j = 62u32.saturating_sub(bits) >> 1;
        let root = v.max(1).wrapping_shl(j.saturating_mul(2)).isqrt();
        let reciprocal = 1i128.wrapping_shl(RECIPROCAL_EXPONENT as u32).checked_div(root).unwrap_or_default();
        Ok(Spread { mean, reciprocal, j: j.into() })
    }
}
