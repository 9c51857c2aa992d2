//! Quotients of rows, and what their gradients subtract (rules N-22 and N-23), in `int64`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::operators::{Normalize, OneHotSub};

use super::{OnTorch, Torch};

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
