//! Tokens chosen (rules N-32 to N-37), in `int64`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::operators::{Choose, Perturb, RowArgMax, RowPick, TailSum, Threshold};

use super::random::{LOW, philox};
use super::{LIMIT_63, OnTorch, Torch, interpolate, rescale};

/// Numbers of a row of controls.
const CONTROLS: i64 = 7;

/// The place of the first element of each row that none exceeds, by comparisons alone: which of several largest
/// elements an `argmax` names is for each device to choose.
fn first_largest(rows: &Tensor) -> Result<Tensor, TchError> {
    let length = rows.size2()?.1;
    let below = rows.f_lt_tensor(&rows.f_amax([1i64], true)?)?;
    let places = Tensor::f_arange(length, (Kind::Int64, rows.device()))?.f_expand_as(rows)?;
    places.f_masked_fill(&below, length)?.f_amin([1i64], false)
}

/// One element of each row; `place` is a column.
fn pick(rows: &Tensor, place: &Tensor) -> Result<Tensor, TchError> {
    rows.f_gather(1, &place.f_clamp(0, rows.size2()?.1 - 1)?, false)
}

/// Sums of rows of parts; `least` has one element for each row.
fn tail_sum(a: &Tensor, w: Option<&Tensor>, least: &Tensor) -> Result<Tensor, TchError> {
    let below = a.f_lt_tensor(least)?;
    let units = match w {
        Some(w) => w.f_masked_fill(&below, 0)?,
        None => below.f_logical_not()?.f_to_kind(Kind::Int64)?,
    };
    units.f_sum_dim_intlist(&[2i64][..], false, Kind::Int64)
}

/// One of each row's controls.
fn control(controls: &Tensor, index: i64) -> Result<Tensor, TchError> {
    controls.f_reshape([-1, CONTROLS])?.f_select(1, index)
}

/// Thresholds, counts, masses, totals, controls.
fn threshold(operands: [&Tensor; 5], step: i64, limit: i64) -> Result<Tensor, TchError> {
    let [t, counts, masses, totals, controls] = operands;
    let t = t.f_reshape([-1])?;
    let sum = |of: &Tensor| of.f_reshape([t.numel() as i64, -1])?.f_sum_dim_intlist(&[1i64][..], false, Kind::Int64);
    let (k, q) = (control(controls, 3)?.f_clamp_min(1)?, control(controls, 4)?.f_clamp(1, 1 << 16)?);
    let enough = sum(counts)?.f_ge_tensor(&k)?;
    let heavy = sum(masses)?.f_bitwise_left_shift_tensor_scalar(16)?.f_ge_tensor(&sum(totals)?.f_mul(&q)?)?;
    let raised = t.f_add_scalar(step)?.f_clamp(-limit, limit)?;
    raised.f_where_self(&enough.f_logical_or(&heavy)?, &t)
}

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

/// Places and largest elements of the parts of rows, and controls.
fn choose(
    (place, best, controls): (&Tensor, &Tensor, &Tensor),
    length: i64,
    (parts, limit): (i64, i64),
) -> Result<Tensor, TchError> {
    let part = first_largest(&best.f_reshape([-1, parts])?)?.f_reshape([-1, 1])?;
    let within = pick(&place.f_reshape([-1, parts])?, &part)?;
    let choice = part.f_mul_scalar(length)?.f_add(&within)?.f_clamp(-limit, limit)?.f_reshape([-1])?;
    choice.f_masked_fill(&control(controls, 0)?.f_eq(0)?, 0)
}

impl OnTorch for RowArgMax {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        first_largest(&on.narrow(0)?.f_reshape([-1, self.depth as i64])?)
    }
}

impl OnTorch for RowPick {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        pick(&on.narrow(0)?.f_reshape([-1, self.depth as i64])?, &on.column(1)?)
    }
}

impl OnTorch for TailSum {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let parts = [-1, self.parts as i64, self.depth as i64];
        let part = |i: usize| on.operand(i)?.f_reshape(parts);
        let least = on.operand(2)?.f_add_scalar(self.bound)?.f_reshape([-1, 1, 1])?;
        let w = if self.weighted { Some(part(1)?) } else { None };
        on.rescale(&tail_sum(&part(0)?, w.as_ref(), &least)?, self.shift)
    }
}

impl OnTorch for Threshold {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let operands = [&on.operand(0)?, &on.operand(1)?, &on.operand(2)?, &on.operand(3)?, &on.operand(4)?];
        threshold(operands, self.step, on.limit)
    }
}

impl OnTorch for Perturb {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let least = on.column(1)?.f_add_scalar(self.bound)?;
        let operands = (&on.matrix(0)?, &least, &on.operand(2)?, &on.operand(3)?);
        perturb(operands, i64::from(self.places), (self.shift as i32, on.limit))
    }
}

impl OnTorch for Choose {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let operands = (&on.operand(0)?, &on.operand(1)?, &on.operand(2)?);
        choose(operands, self.length, (self.parts as i64, on.limit))
    }
}
