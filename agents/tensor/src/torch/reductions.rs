//! Rows reduced to an element each (rules N-19, N-21 and N-31).

use tch::{Kind, TchError, Tensor};
use tensorlink_num::operators::{RowAbsMax, RowMax, RowSum};

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
