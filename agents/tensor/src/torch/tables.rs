//! Functions given by tables (rules N-18 and N-20), in `int64`.

use tch::{TchError, Tensor};
use tensorlink_num::bounds::EXP_ARGUMENT_MAX;
use tensorlink_num::operators::{ExpNeg, Lookup};

use super::{LIMIT_63, OnTorch, Torch, hidden, interpolate, rescale, round_each};

impl OnTorch for Lookup {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let Self { input_shift, low, fraction_bits, log, shift } = *self;
        let end = 1i64 << (log + fraction_bits);
        let places = i64::from(fraction_bits);
        let u = rescale(&on.operand(0)?, input_shift as i32, LIMIT_63)?.f_sub_scalar(low)?.f_clamp(0, end)?;
        let j = u.f_bitwise_right_shift_tensor_scalar(places)?.f_clamp_max((1i64 << log) - 1)?;
        let r = u.f_sub(&j.f_bitwise_left_shift_tensor_scalar(places)?)?;
        on.rescale(&interpolate(&on.operand(1)?, &j, &r, fraction_bits)?, shift)
    }
}

impl OnTorch for ExpNeg {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let z = on.column(1)?.f_sub(&on.matrix(0)?)?.f_clamp_min(0)?;
        let u = rescale(&z.f_mul_scalar(self.multiplier)?, self.input_shift as i32, LIMIT_63)?;
        let u = u.f_clamp_max(EXP_ARGUMENT_MAX)?;
        let j = u.f_bitwise_right_shift_tensor_scalar(8)?.f_bitwise_and(0xff)?;
        let sum = interpolate(&on.operand(2)?, &j, &u.f_bitwise_and(0xff)?, 8)?;
        // n + 8 places, n being each element's own.
        let places = u.f_bitwise_right_shift_tensor_scalar(16)?.f_add_scalar(8)?;
        let y = round_each(&sum, &places)?.f_clamp(-on.limit, on.limit)?;
        if self.visible.is_causal() { y.f_masked_fill(&hidden(&z, on.tokens)?, 0) } else { Ok(y) }
    }
}
