//! What of a row becomes one element, and what one makes of a row (rules N-19, N-21 to N-23, N-31), in `int64`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::operators::{Normalize, OneHotSub, RowAbsMax, RowMax, RowSum};

use super::{OnTorch, Torch, hidden};

impl OnTorch for RowMax {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        if !self.visible.is_causal() {
            return on.narrow(0)?.f_reshape([-1, self.depth as i64])?.f_amax([1i64], false);
        }
        let a = on.narrow(0)?.f_reshape([-1, on.row])?;
        // A row sees its own token at least.
        a.f_masked_fill(&hidden(&a, on.tokens)?, -on.limit)?.f_amax([1i64], false)
    }
}

impl OnTorch for RowAbsMax {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        on.narrow(0)?.f_reshape([-1, self.depth as i64])?.f_abs()?.f_amax([1i64], false)
    }
}

impl OnTorch for RowSum {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let parts = on.operand(0)?.f_reshape([-1, self.depth as i64])?;
        on.rescale(&parts.f_sum_dim_intlist(&[1i64][..], false, Kind::Int64)?, self.shift)
    }
}

impl OnTorch for Normalize {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        // `⌊(2·p·2^bits + z) / 2z⌋`.
        let z = on.column(1)?.f_clamp_min(1)?;
        let twice = on.matrix(0)?.f_bitwise_left_shift_tensor_scalar(i64::from(self.bits) + 1)?;
        let quotient = twice.f_add(&z)?.f_div_tensor_mode(&z.f_mul_scalar(2)?, "floor")?;
        quotient.f_clamp(-on.limit, on.limit)
    }
}

impl OnTorch for OneHotSub {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let p = on.matrix(0)?;
        let columns = Tensor::f_arange(on.row, (Kind::Int64, p.device()))?;
        let hit = on.column(1)?.f_eq_tensor(&columns)?;
        on.rescale(&p.f_sub(&hit.f_to_kind(Kind::Int64)?.f_mul_scalar(self.one)?)?, self.shift)
    }
}
