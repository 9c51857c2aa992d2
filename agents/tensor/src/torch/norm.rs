//! Norm and InverseNorm (rules N-28 and N-40), in `int64`.

use tch::{Kind, TchError, Tensor};

use super::{rescale, rescale_each};
use crate::instruction::{Norm, Spread};

/// Bits of the longest variance.
const VARIANCE_BITS: i64 = 62;

/// `⌊(2·a + b) / 2b⌋` of rule N-3, `b` a constant.
fn div(a: &Tensor, b: i64) -> Result<Tensor, TchError> {
    a.f_mul_scalar(2)?.f_add_scalar(b)?.f_div_scalar_mode(2 * b, "floor")
}

/// `⌊√w⌋` of elements of at least 0: the root in `f64` is at most one off.
pub(super) fn square_root(w: &Tensor) -> Result<Tensor, TchError> {
    let root = w.f_to_kind(Kind::Double)?.f_sqrt()?.f_floor()?.f_to_kind(Kind::Int64)?;
    let rest = w.f_sub(&root.f_mul(&root)?)?;
    let below = rest.f_gt_tensor(&root.f_mul_scalar(2)?)?.f_to_kind(Kind::Int64)?;
    root.f_add(&below)?.f_sub(&rest.f_lt(0)?.f_to_kind(Kind::Int64)?)
}

/// Mean, `R` and `j` of each row, as columns.
fn row_scales(x: &Tensor, spread: &Spread) -> Result<[Tensor; 3], TchError> {
    let (k, Spread { center, epsilon, places }) = (x.size2()?.1, *spread);
    let unit = 1i64 << places;
    let sum_of = |x: &Tensor| x.f_sum_dim_intlist(&[1i64][..], true, Kind::Int64);
    let sum = sum_of(x)?;
    let mean = if center { div(&sum.f_mul_scalar(unit)?, k)? } else { sum.f_zeros_like()? };
    let squares = sum_of(&x.f_mul(x)?)?.f_mul_scalar(unit * unit)?;
    let variance =
        squares.f_sub(&mean.f_mul(&sum)?.f_mul_scalar(2 * unit)?)?.f_add(&mean.f_mul(&mean)?.f_mul_scalar(k)?)?;
    let variance = variance.f_add_scalar(epsilon)?;
    // As many powers of two are at most v as v has bits.
    let one = Tensor::f_ones([1], (Kind::Int64, x.device()))?;
    let powers = one.f_bitwise_left_shift(&Tensor::f_arange(VARIANCE_BITS, (Kind::Int64, x.device()))?)?;
    let bits = sum_of(&variance.f_ge_tensor(&powers)?.f_to_kind(Kind::Int64)?)?;
    let j = bits.f_neg()?.f_add_scalar(VARIANCE_BITS)?.f_bitwise_right_shift_tensor_scalar(1)?;
    let root = square_root(&variance.f_bitwise_left_shift(&j.f_mul_scalar(2)?)?)?;
    let reciprocal = root.f_full_like(1i64 << 54)?.f_div_tensor_mode(&root, "floor")?;
    Ok([mean, reciprocal, j])
}

/// Runs of `x` as long as gain and bias.
pub(super) fn norm(
    x: &Tensor,
    (gain, bias): (&Tensor, &Tensor),
    attributes: &Norm,
    limit: i64,
) -> Result<Tensor, TchError> {
    let x = &x.f_reshape([-1, gain.numel() as i64])?;
    let [mean, reciprocal, j] = row_scales(x, &attributes.spread)?;
    let normal = x.f_mul_scalar(1i64 << attributes.spread.places)?.f_sub(&mean)?.f_mul(&reciprocal)?;
    let places = j.f_neg()?.f_add_scalar(i64::from(attributes.places()))?.f_expand_as(&normal)?;
    let normal = rescale_each(&normal, &places, attributes.limit())?;
    let shifted = bias.f_reshape([1, -1])?.f_bitwise_left_shift_tensor_scalar(i64::from(attributes.bias_shift))?;
    rescale(&normal.f_mul(&gain.f_reshape([1, -1])?)?.f_add(&shifted)?, attributes.shift, limit)
}

/// What rows are multiplied by (rule N-40).
pub(super) fn inverse_norm(x: &Tensor, spread: &Spread, (shift, limit): (i32, i64)) -> Result<Tensor, TchError> {
    let [_, reciprocal, j] = row_scales(x, spread)?;
    // By `shift − j`, of either sign.
    let places = j.f_neg()?.f_add_scalar(i64::from(shift))?;
    rescale_each(&reciprocal, &places, limit)
}
