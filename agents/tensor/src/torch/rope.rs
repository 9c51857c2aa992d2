//! Rope (rule N-29), in `int64`.

use tch::{TchError, Tensor};

use super::rescale;

/// `x` is T × (H·D), `table` at least T rows of R/2 cosines and R/2 sines of `fraction` bits.
pub(super) fn rope(
    x: &Tensor,
    table: &Tensor,
    heads: i64,
    (shift, limit, fraction): (i32, i64, i64),
) -> Result<Tensor, TchError> {
    let ((t, width), turned) = (x.size2()?, table.size2()?.1);
    let (depth, half) = (width / heads, turned / 2);
    let x = x.f_reshape([t, heads, depth])?;
    let table = table.f_narrow(0, 0, t)?.f_reshape([t, 1, turned])?;
    let (cosines, sines) = (table.f_narrow(2, 0, half)?, table.f_narrow(2, half, half)?);
    let (low, high) = (x.f_narrow(2, 0, half)?, x.f_narrow(2, half, half)?);
    let rest = x.f_narrow(2, turned, depth - turned)?.f_bitwise_left_shift_tensor_scalar(fraction)?;
    let first = low.f_mul(&cosines)?.f_sub(&high.f_mul(&sines)?)?;
    let second = high.f_mul(&cosines)?.f_add(&low.f_mul(&sines)?)?;
    rescale(&Tensor::f_cat(&[first, second, rest], 2)?, shift, limit)
}
