//! Roots and what is divided by them (rules N-42 and N-43), in `int64`.

use tch::{TchError, Tensor};
use tensorlink_num::operators::{Ratio, Shrink};

use super::norms::square_root;
use super::{OnTorch, Torch};

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
