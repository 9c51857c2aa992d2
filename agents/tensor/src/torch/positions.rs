//! Rope (rule N-29), in `int64`.

use tch::{TchError, Tensor};
use tensorlink_num::operators::Rope;

use super::{OnTorch, Torch};

impl OnTorch for Rope {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let (x, table) = (on.matrix(0)?, on.operand(1)?);
        let (t, (depth, half)) = (x.size2()?.0, (self.width as i64, self.half as i64));
        let x = x.f_reshape([t, -1, depth])?;
        let table = table.f_reshape([-1, 2 * half])?.f_narrow(0, 0, t)?.f_reshape([t, 1, 2 * half])?;
        let (cosines, sines) = (table.f_narrow(2, 0, half)?, table.f_narrow(2, half, half)?);
        let (low, high) = (x.f_narrow(2, 0, half)?, x.f_narrow(2, half, half)?);
        let rest = x.f_narrow(2, 2 * half, depth - 2 * half)?;
        let rest = rest.f_bitwise_left_shift_tensor_scalar(i64::from(self.exponent))?;
        let first = low.f_mul(&cosines)?.f_sub(&high.f_mul(&sines)?)?;
        let second = high.f_mul(&cosines)?.f_add(&low.f_mul(&sines)?)?;
        on.rescale(&Tensor::f_cat(&[first, second, rest], 2)?, self.shift)
    }
}
