//! What choices of tokens are drawn of: rows in parts, thresholds, controls.

use tensorlink_types::TensorType;
use tensorlink_types::operator::MAX_REDUCTION;

use super::pieces::{dim, ty};
use super::{CaseError, Dice};
use crate::bounds::{COEFFICIENT_BOUND, CONTROLS, WHOLE_SHARE};
use crate::tensor::Tensor;

/// Rows in parts: how many rows, parts of each, elements of a part (4096 once in a while).
pub(super) struct Parts {
    pub(super) rows: u32,
    pub(super) parts: u32,
    pub(super) length: u32,
}

impl Parts {
    pub(super) fn draw(dice: &mut Dice, size: u32) -> Self {
        if dice.once_in(40) {
            return Self { rows: 1, parts: dim(dice, 2), length: MAX_REDUCTION as u32 };
        }
        let parts = if dice.once_in(2) { 1 } else { dim(dice, 4) };
        Self { rows: dim(dice, size), parts, length: dim(dice, size) }
    }

    pub(super) const fn whole(&self) -> [u32; 2] {
        [self.rows, self.parts.saturating_mul(self.length)]
    }

    pub(super) const fn reduced(&self) -> [u32; 2] {
        [self.rows, self.parts]
    }
}

/// Mantissas, those of half of all tensors so near to each other that many are equal.
pub(super) fn tied(dice: &mut Dice, ty: TensorType) -> Result<Tensor, CaseError> {
    if dice.once_in(2) {
        return Ok(dice.tensor(&ty)?);
    }
    let centre = dice.range(3 - ty.limit(), ty.limit() - 3).clamp(-ty.limit(), ty.limit());
    let near: Vec<i64> = (0..ty.elements())
        .map(|_| dice.range(centre.saturating_sub(2), centre.saturating_add(2)).clamp(-ty.limit(), ty.limit()))
        .collect();
    Ok(Tensor::from_wide(ty, &near)?)
}

/// Places of `length` elements, some outside.
pub(super) fn places(dice: &mut Dice, ty: TensorType, length: u32) -> Result<Tensor, CaseError> {
    let last = i64::from(length) - 1;
    let drawn: Vec<i64> = (0..ty.elements())
        .map(|_| match dice.range(0, 9) {
            0 => -1,
            1 => last + 1,
            2 => dice.mantissa(ty.limit()),
            _ => dice.range(0, last),
        })
        .map(|place| place.clamp(-ty.limit(), ty.limit()))
        .collect();
    Ok(Tensor::from_wide(ty, &drawn)?)
}

/// Rows of controls: what they mean mostly, anything now and then. `most` is about how many tokens there are.
pub(super) fn controls(dice: &mut Dice, bits: (i64, i64), rows: u32, most: i64) -> Result<Tensor, CaseError> {
    let ty = ty(dice, bits, 0, &[rows, CONTROLS as u32])?;
    let mut drawn = Vec::new();
    for _ in 0..rows {
        let usual = [
            dice.range(0, 1),
            if dice.once_in(3) { 0 } else { dice.range(1, 8192) },
            dice.range(0, 5000),
            dice.range(0, most),
            dice.range(-1, WHOLE_SHARE + 1),
            dice.mantissa(ty.limit()),
            dice.mantissa(ty.limit()),
        ];
        let wild = dice.once_in(4);
        drawn.extend(usual.map(|x| if wild { dice.mantissa(ty.limit()) } else { x.clamp(-ty.limit(), ty.limit()) }));
    }
    Ok(Tensor::from_wide(ty, &drawn)?)
}

/// A threshold for each row, and a bound to add to it; together mostly among the elements of `a`.
pub(super) fn threshold(dice: &mut Dice, a: &TensorType, rows: u32) -> Result<(Tensor, i64), CaseError> {
    // SAFETY of the cast: 2 to 61 bits.
    let ty = TensorType::new(dice.range(2, 61) as u8, a.exponent(), &[rows])?;
    let reach = a.limit().min(ty.limit());
    if dice.once_in(4) {
        return Ok((dice.tensor(&ty)?, dice.mantissa(COEFFICIENT_BOUND - 1)));
    }
    let drawn: Vec<i64> = (0..rows).map(|_| dice.range(-reach, reach) / 2).collect();
    Ok((Tensor::from_wide(ty, &drawn)?, dice.range(-reach.min(1 << 39), reach.min(1 << 39)) / 4))
}
