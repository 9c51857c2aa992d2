//! Rows perturbed by Gumbel draws (rule N-36), in `int64`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::operators::Perturb;

use super::controls::control;
use super::philox::{LOW, philox};
use super::{LIMIT_63, OnTorch, Torch, interpolate, rescale};

/// Draws of the standard Gumbel distribution, from words.
fn gumbel(words: &Tensor, table: &Tensor) -> Result<Tensor, TchError> {
    // Leading zeros, at most 31, by halves: what is left begins with a one, unless the word is 0.
    let (mut zeros, mut words) = (words.f_zeros_like()?, words.shallow_clone());
    for places in [16i64, 8, 4, 2, 1] {
        let moved = words.f_lt(1i64 << (32 - places))?.f_to_kind(Kind::Int64)?.f_mul_scalar(places)?;
        words = words.f_bitwise_left_shift(&moved)?;
        zeros = zeros.f_add(&moved)?;
    }
    let fraction = words.f_bitwise_right_shift_tensor_scalar(15)?.f_bitwise_and(0xffff)?;
    let entry = zeros.f_mul_scalar(257)?.f_add(&fraction.f_bitwise_right_shift_tensor_scalar(8)?)?;
    let sum = interpolate(&table.f_reshape([-1])?, &entry, &fraction.f_bitwise_and(0xff)?, 8)?;
    rescale(&sum, 8, LIMIT_63)
}

/// Rows, the least that is perturbed of each, controls and the table; aligned by `places`.
fn perturb(
    (a, least, controls, table): (&Tensor, &Tensor, &Tensor, &Tensor),
    places: i64,
    (shift, limit): (i32, i64),
) -> Result<Tensor, TchError> {
    let column = |index: i64| control(controls, index)?.f_reshape([-1, 1]);
    let word = |index: i64| column(index)?.f_bitwise_and(LOW);
    let along = Tensor::f_arange(a.size2()?.1, (Kind::Int64, a.device()))?.f_reshape([1, -1])?;
    let zero = || Tensor::f_zeros([1], (Kind::Int64, along.device()));
    let [words, ..] = philox([along.shallow_clone(), word(2)?, zero()?, zero()?], [word(5)?, word(6)?])?;
    let noise = gumbel(&words, table)?.f_mul(&column(1)?.f_clamp_min(0)?)?;
    let perturbed = a.f_bitwise_left_shift_tensor_scalar(places)?.f_add(&noise)?;
    rescale(&perturbed, shift, limit)?.f_masked_fill(&a.f_lt_tensor(least)?, -limit)
}

impl OnTorch for Perturb {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let least = on.column(1)?.f_add_scalar(self.bound)?;
        let operands = (&on.matrix(0)?, &least, &on.operand(2)?, &on.operand(3)?);
        perturb(operands, i64::from(self.places), (self.shift as i32, on.limit))
    }
}
