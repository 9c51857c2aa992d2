//! Gradients of embeddings and heads, and the optimiser (rules N-41 to N-43 and N-45), in `int64`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::operators::{GatherGrad, GroupSum, Ratio, Shrink};

use super::norm::square_root;
use super::{OnTorch, Torch};

impl OnTorch for GatherGrad {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        // K × T, to entries × K.
        let (g, (entries, width)) = (on.matrix(0)?, (self.entries as i64, self.width as i64));
        let ids = on.operand(1)?.f_reshape([-1])?.f_narrow(0, 0, self.tokens as i64)?.f_clamp(0, entries - 1)?;
        let none = Tensor::f_zeros([entries, width], (Kind::Int64, g.device()))?;
        // Sums of integers are the same in any order.
        on.rescale(&none.f_index_add(0, &ids, &g.f_transpose(0, 1)?)?, self.shift)
    }
}

/// What rules N-42 and N-43 take the root of; few libraries have a root of integers.
fn root(v: &Tensor) -> Result<Tensor, TchError> {
    square_root(&v.f_clamp_min(0)?)
}

impl OnTorch for Ratio {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        // `⌊(2·m·2^bits + d) / 2d⌋`.
        let d = root(&on.operand(1)?)?.f_add_scalar(self.floor)?;
        let twice = on.operand(0)?.f_bitwise_left_shift_tensor_scalar(i64::from(self.bits) + 1)?;
        let quotient = twice.f_add(&d)?.f_div_tensor_mode(&d.f_mul_scalar(2)?, "floor")?;
        quotient.f_clamp(-on.limit, on.limit)
    }
}

impl OnTorch for Shrink {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let (root, one) = (root(&on.operand(0)?)?.f_clamp_min(1)?, 1i64 << self.bits);
        root.f_full_like(one * self.limit)?.f_div_tensor_mode(&root, "floor")?.f_clamp_max(one.min(on.limit))
    }
}

impl OnTorch for GroupSum {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let heads = [-1, self.groups as i64, self.share as i64, self.width as i64];
        let heads = on.matrix(0)?.f_reshape(heads)?;
        on.rescale(&heads.f_sum_dim_intlist(&[2i64][..], false, Kind::Int64)?, self.shift)
    }
}
