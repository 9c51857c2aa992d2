//! Gradients of embeddings and heads (rules N-41 and N-45), in `int64`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::operators::{GatherGrad, GroupSum};

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

impl OnTorch for GroupSum {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let heads = [-1, self.groups as i64, self.share as i64, self.width as i64];
        let heads = on.matrix(0)?.f_reshape(heads)?;
        on.rescale(&heads.f_sum_dim_intlist(&[2i64][..], false, Kind::Int64)?, self.shift)
    }
}
