//! Norm and InverseNorm (rules N-28 and N-40), in `int64`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::fixed::limit;
use tensorlink_num::operators::{InverseNorm, Norm, Spread};

use super::{OnTorch, Torch, rescale_each};

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
    let (k, Spread { center, epsilon, places, .. }) = (x.size2()?.1, *spread);
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

impl OnTorch for Norm {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let x = &on.operand(0)?.f_reshape([-1, self.spread.depth as i64])?;
        let [mean, reciprocal, j] = row_scales(x, &self.spread)?;
        let normal = x.f_mul_scalar(1i64 << self.spread.places)?.f_sub(&mean)?.f_mul(&reciprocal)?;
        let places = j.f_neg()?.f_add_scalar(self.spread.reciprocal_shift())?.f_expand_as(&normal)?;
        let normal = rescale_each(&normal, &places, limit(self.spread.bits()))?;
        let (gain, bias) = (on.operand(1)?.f_reshape([1, -1])?, on.operand(2)?.f_reshape([1, -1])?);
        let shifted = bias.f_bitwise_left_shift_tensor_scalar(i64::from(self.bias_shift))?;
        on.rescale(&normal.f_mul(&gain)?.f_add(&shifted)?, self.shift)
    }
}

impl OnTorch for InverseNorm {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let x = on.operand(0)?.f_reshape([-1, self.spread.depth as i64])?;
        let [_, reciprocal, j] = row_scales(&x, &self.spread)?;
        // By `shift − j`, of either sign.
        let places = j.f_neg()?.f_add_scalar(self.shift)?;
        rescale_each(&reciprocal, &places, on.limit)
    }
}
