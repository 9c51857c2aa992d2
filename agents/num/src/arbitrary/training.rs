//! How to draw the operators of training: N-38 to N-48.

use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Opcode, TensorType};

use super::pieces::{Drawn, build, coefficient, dim, exponent, parts, per_row, reduced_shape, shape, shift, ty};
use super::transformer::{heads, ids, rows};
use super::{CaseError, Dice};
use crate::checked::{
    DITHER_BITS, EPSILON_BOUND, MAX_RATIO_PLACES, MAX_SHRINK_PLACES, MIN_INVERSE_SHIFT, NORM_INPUT_BITS, SHRINK_BOUND,
    reciprocal_exponent,
};
use crate::tensor::Tensor;

/// A shape of one element for each of its rows, or of one for all.
fn leading(dice: &mut Dice, dims: &[u32]) -> Vec<u32> {
    let keep = dice.range(0, dims.len() as i64) as usize;
    match dims.get(..keep) {
        Some(head) if !head.is_empty() => head.to_vec(),
        _ => vec![1],
    }
}

pub(super) fn row_combine(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let dims = shape(dice, size);
    let (ea, eb, ey) = (exponent(dice), exponent(dice), exponent(dice));
    let a = ty(dice, (2, 62), ea, &dims)?;
    let fewer = leading(dice, &dims);
    let b = ty(dice, (2, 62), eb, &fewer)?;
    let y = ty(dice, (2, 64), ey, &dims)?;
    let attributes = vec![coefficient(dice, a.limit()), coefficient(dice, b.limit()), shift(dice)];
    Ok(build(Opcode::RowCombine, vec![dice.tensor(&a)?, dice.tensor(&b)?], attributes, y))
}

pub(super) fn row_mul(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let dims = shape(dice, size);
    let (ea, eb, shift) = (exponent(dice), exponent(dice), shift(dice));
    let a = ty(dice, (2, 62), ea, &dims)?;
    let fewer = leading(dice, &dims);
    let b = ty(dice, (2, (64 - i64::from(a.bits())).max(2)), eb, &fewer)?;
    let y = ty(dice, (2, 64), ea + eb - shift, &dims)?;
    Ok(build(Opcode::RowMul, vec![dice.tensor(&a)?, dice.tensor(&b)?], vec![shift], y))
}

pub(super) fn inverse_norm(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, ex) = (reduced_shape(dice, size), exponent(dice));
    let x = ty(dice, (2, NORM_INPUT_BITS.into()), ex, &dims)?;
    let reduced = parts(dice, &x);
    let shift = if dice.once_in(5) { dice.range(MIN_INVERSE_SHIFT, 63) } else { dice.range(0, 24) };
    let y = ty(dice, (2, 64), reciprocal_exponent(x.bits()) - ex - shift, &reduced)?;
    let small = if dice.once_in(4) { 0 } else { 45 };
    let epsilon = 1 + (dice.range(0, EPSILON_BOUND - 2) >> dice.range(small, 59));
    let values = rows(dice, &x);
    let operands = vec![Tensor::from_wide(x, &values)?];
    Ok(build(Opcode::InverseNorm, operands, vec![dice.range(0, 1), epsilon, shift], y))
}

pub(super) fn gather_grad(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let long = dice.once_in(40);
    let tokens = if long { MAX_REDUCTION as u32 } else { dim(dice, size.saturating_mul(2)) };
    let (entries, width, more) = (dim(dice, 12), if long { 1 } else { dim(dice, size) }, dim(dice, 4) - 1);
    let (eg, shift) = (exponent(dice), shift(dice));
    let g = ty(dice, (2, 50), eg, &[width, tokens])?;
    let ids = ids(dice, tokens + more, entries)?;
    let y = ty(dice, (2, 64), eg - shift, &[entries, width])?;
    Ok(build(Opcode::GatherGrad, vec![dice.tensor(&g)?, ids], vec![shift], y))
}

pub(super) fn ratio(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, em, half) = (shape(dice, size), exponent(dice), dice.range(-20, 20));
    let m = ty(dice, (2, 60), em, &dims)?;
    let v = ty(dice, (2, 64), 2 * half, &dims)?;
    let bits = dice.range(0, (60 - i64::from(m.bits())).clamp(0, MAX_RATIO_PLACES));
    let floor = 1 + (dice.range(0, (1 << 40) - 2) >> dice.range(0, 39));
    let y = ty(dice, (2, 64), em - half + bits, &dims)?;
    Ok(build(Opcode::Ratio, vec![dice.tensor(&m)?, dice.tensor(&v)?], vec![bits, floor], y))
}

pub(super) fn shrink(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, half) = (shape(dice, size), dice.range(-20, 20));
    let s = ty(dice, (2, 64), 2 * half, &dims)?;
    let (limit, bits) = (1 + (dice.range(0, SHRINK_BOUND - 2) >> dice.range(0, 30)), dice.range(0, MAX_SHRINK_PLACES));
    let y = ty(dice, (2, 64), bits, &dims)?;
    Ok(build(Opcode::Shrink, vec![dice.tensor(&s)?], vec![limit, bits], y))
}

pub(super) fn at_step(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (width, e) = (dim(dice, size), exponent(dice));
    // Many rows once in a while, so that the step is not always beyond them.
    let rows = if dice.once_in(2) { dim(dice, 9) } else { 300 };
    let flat = dice.once_in(3);
    let dims = if flat { vec![rows] } else { vec![rows, width] };
    let table = ty(dice, (2, 64), e, &dims)?;
    let y = TensorType::new(table.bits(), table.exponent(), &[if flat { 1 } else { width }])?;
    Ok(build(Opcode::AtStep, vec![dice.tensor(&table)?], vec![], y))
}

pub(super) fn group_sum(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (tokens, width, (heads, kv_heads)) = (dim(dice, size), dim(dice, size), heads(dice));
    let (e, shift) = (exponent(dice), shift(dice));
    let a = ty(dice, (2, 58), e, &[tokens, heads * width])?;
    let y = ty(dice, (2, 64), e - shift, &[tokens, kv_heads * width])?;
    Ok(build(Opcode::GroupSum, vec![dice.tensor(&a)?], vec![heads.into(), shift], y))
}

/// A word of a counter, half of the time a whole one.
fn stream(dice: &mut Dice) -> i64 {
    let word = dice.bits(32) as i64;
    word >> dice.range(-32, 31).max(0)
}

pub(super) fn dropout(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, ea, ey) = (shape(dice, size), exponent(dice), exponent(dice));
    let a = ty(dice, (2, 62), ea, &dims)?;
    let y = ty(dice, (2, 64), ey, &dims)?;
    let keep = match dice.range(0, 11) {
        0 => 1,
        1 => 1 << 32,
        _ => dice.range(1 << 30, 1 << 32),
    };
    let attributes = vec![keep, stream(dice), coefficient(dice, a.limit()), shift(dice)];
    Ok(build(Opcode::Dropout, vec![dice.tensor(&a)?], attributes, y))
}

pub(super) fn slice(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (rows, width, more, e) = (dim(dice, size), dim(dice, size), dim(dice, size) - 1, exponent(dice));
    let a = ty(dice, (2, 64), e, &[rows, width + more])?;
    let y = TensorType::new(a.bits(), a.exponent(), &[rows, width])?;
    let offset = dice.range(0, more.into());
    Ok(build(Opcode::Slice, vec![dice.tensor(&a)?], vec![offset], y))
}

pub(super) fn dither(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, ep, ez) = (shape(dice, size), exponent(dice), exponent(dice));
    let p = ty(dice, (2, 58), ep, &dims)?;
    let z = ty(dice, (2, DITHER_BITS.into()), ez, &per_row(&dims))?;
    let bits = dice.range(0, (60 - i64::from(p.bits())).min(32));
    let y = ty(dice, (2, 64), ep - ez + bits, &dims)?;
    let stream = stream(dice);
    Ok(build(Opcode::Dither, vec![dice.tensor(&p)?, dice.tensor(&z)?], vec![bits, stream], y))
}
