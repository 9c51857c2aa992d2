//! How to draw the operators that choose tokens: N-32 to N-37.

use std::sync::OnceLock;

use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Opcode, TensorType};

use super::pieces::{Drawn, build, dim, exponent, shift, ty};
use super::{CaseError, Dice};
use crate::checked::{
    CHOICE_BITS, COEFFICIENT_BOUND, CONTROLS, GUMBEL_EXPONENT, GUMBEL_TABLE_LEN, MAX_PERTURB_PLACES, PERTURB_EXPONENT,
    WHOLE_SHARE,
};
use crate::tables::{TableError, gumbel_table};
use crate::tensor::Tensor;

/// Rows in parts: how many rows, parts of each, elements of a part (4096 once in a while).
struct Parts {
    rows: u32,
    parts: u32,
    length: u32,
}

impl Parts {
    fn draw(dice: &mut Dice, size: u32) -> Self {
        if dice.once_in(40) {
            return Self { rows: 1, parts: dim(dice, 2), length: MAX_REDUCTION as u32 };
        }
        let parts = if dice.once_in(2) { 1 } else { dim(dice, 4) };
        Self { rows: dim(dice, size), parts, length: dim(dice, size) }
    }

    const fn whole(&self) -> [u32; 2] {
        [self.rows, self.parts.saturating_mul(self.length)]
    }

    const fn reduced(&self) -> [u32; 2] {
        [self.rows, self.parts]
    }
}

/// Mantissas, those of half of all tensors so near to each other that many are equal.
fn tied(dice: &mut Dice, ty: TensorType) -> Result<Tensor, CaseError> {
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
fn places(dice: &mut Dice, ty: TensorType, length: u32) -> Result<Tensor, CaseError> {
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
fn controls(dice: &mut Dice, bits: (i64, i64), rows: u32, most: i64) -> Result<Tensor, CaseError> {
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
fn threshold(dice: &mut Dice, a: &TensorType, rows: u32) -> Result<(Tensor, i64), CaseError> {
    // SAFETY of the cast: 2 to 61 bits.
    let ty = TensorType::new(dice.range(2, 61) as u8, a.exponent(), &[rows])?;
    let reach = a.limit().min(ty.limit());
    if dice.once_in(4) {
        return Ok((dice.tensor(&ty)?, dice.mantissa(COEFFICIENT_BOUND - 1)));
    }
    let drawn: Vec<i64> = (0..rows).map(|_| dice.range(-reach, reach) / 2).collect();
    Ok((Tensor::from_wide(ty, &drawn)?, dice.range(-reach.min(1 << 39), reach.min(1 << 39)) / 4))
}

pub(super) fn row_arg_max(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (parts, e) = (Parts::draw(dice, size), exponent(dice));
    let a = ty(dice, (2, 64), e, &parts.whole())?;
    let y = TensorType::new(CHOICE_BITS, 0, &parts.reduced())?;
    Ok(build(Opcode::RowArgMax, vec![tied(dice, a)?], vec![], y))
}

pub(super) fn row_pick(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (parts, e) = (Parts::draw(dice, size), exponent(dice));
    let a = ty(dice, (2, 64), e, &parts.whole())?;
    let place = ty(dice, (2, 64), 0, &parts.reduced())?;
    let y = TensorType::new(a.bits(), a.exponent(), &parts.reduced())?;
    let operands = vec![dice.tensor(&a)?, places(dice, place, parts.length)?];
    Ok(build(Opcode::RowPick, operands, vec![], y))
}

pub(super) fn tail_sum(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (parts, ea, ew, shift) = (Parts::draw(dice, size), exponent(dice), exponent(dice), shift(dice));
    let a = ty(dice, (2, 64), ea, &parts.whole())?;
    let w = ty(dice, (2, 32), ew, &parts.whole())?;
    let (t, bound) = threshold(dice, &a, parts.rows)?;
    let weighted = dice.range(0, 1);
    // A count is mostly wanted as it is.
    let shift = if weighted == 0 && dice.once_in(2) { 0 } else { shift };
    let y = ty(dice, (2, 64), if weighted == 1 { ew } else { 0 } - shift, &parts.reduced())?;
    Ok(build(Opcode::TailSum, vec![tied(dice, a)?, dice.tensor(&w)?, t], vec![bound, weighted, shift], y))
}

pub(super) fn threshold_step(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (rows, et, em) = (dim(dice, size), exponent(dice), exponent(dice));
    let parts = if dice.once_in(60) { MAX_REDUCTION as u32 } else { dim(dice, size) };
    let rows = if parts > 100 { 1 } else { rows };
    let t = ty(dice, (2, 61), et, &[rows])?;
    let few = dice.once_in(2);
    let counts = ty(dice, if few { (3, 6) } else { (2, 49) }, 0, &[rows, parts])?;
    let masses = ty(dice, (2, 32), em, &[rows, parts])?;
    // Mostly not negative, as counts and exponentials are, and a mass at most its total.
    let natural = !dice.once_in(4);
    let sign = |x: i64| if natural { x.abs() } else { x };
    let counted: Vec<i64> = (0..counts.elements()).map(|_| sign(dice.mantissa(counts.limit()))).collect();
    let total: Vec<i64> = (0..masses.elements()).map(|_| sign(dice.mantissa(masses.limit()))).collect();
    let mass: Vec<i64> =
        total.iter().map(|total| if natural { dice.range(0, *total) } else { dice.mantissa(masses.limit()) }).collect();
    let step = (COEFFICIENT_BOUND - 1) >> dice.range(0, 40);
    // About as many tokens as are counted.
    let most = counted.iter().fold(0i64, |sum, x| sum.saturating_add(x.abs())) / i64::from(rows);
    let t = dice.tensor(&t)?;
    let y = t.ty().clone();
    let operands = vec![
        t,
        Tensor::from_wide(counts, &counted)?,
        Tensor::from_wide(masses.clone(), &mass)?,
        Tensor::from_wide(masses, &total)?,
        controls(dice, (18, 64), rows, most)?,
    ];
    Ok(build(Opcode::Threshold, operands, vec![step], y))
}

/// The table of every case that has the real one.
fn table() -> Result<Tensor, TableError> {
    static TABLE: OnceLock<Result<Tensor, TableError>> = OnceLock::new();
    TABLE.get_or_init(gumbel_table).clone()
}

pub(super) fn perturb(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (rows, length, shift) = (dim(dice, size), dim(dice, size.saturating_mul(4)), shift(dice));
    let a_bits = dice.range(2, 32);
    // Magnitudes of b bits are below 2^(b − 1): elements and draws stay below 2^61 each.
    let places = dice.range(0, MAX_PERTURB_PLACES.min(62 - a_bits));
    let a = ty(dice, (a_bits, a_bits), PERTURB_EXPONENT - places, &[rows, length])?;
    let table = if dice.once_in(8) {
        let ty = ty(dice, (2, 31), GUMBEL_EXPONENT.into(), &[GUMBEL_TABLE_LEN as u32])?;
        dice.tensor(&ty)?
    } else {
        table()?
    };
    let controls = controls(dice, (14, 32), rows, length.into())?;
    let (t, bound) = threshold(dice, &a, rows)?;
    let shift = if dice.once_in(2) { dice.range(10, 30) } else { shift };
    let y = ty(dice, (2, 64), PERTURB_EXPONENT - shift, &[rows, length])?;
    Ok(build(Opcode::Perturb, vec![tied(dice, a)?, t, controls, table], vec![bound, shift], y))
}

pub(super) fn choose(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (rows, eb) = (dim(dice, size), exponent(dice));
    let parts = if dice.once_in(60) { MAX_REDUCTION as u32 } else { dim(dice, size) };
    let rows = if parts > 100 { 1 } else { rows };
    let length = if dice.once_in(4) { MAX_REDUCTION as u32 } else { dim(dice, 50) };
    let place = ty(dice, (2, 61), 0, &[rows, parts])?;
    let best = ty(dice, (2, 64), eb, &[rows, parts])?;
    let y = TensorType::new(CHOICE_BITS, 0, &[rows])?;
    let operands = vec![places(dice, place, length)?, tied(dice, best)?, controls(dice, (2, 64), rows, length.into())?];
    Ok(build(Opcode::Choose, operands, vec![length.into()], y))
}
