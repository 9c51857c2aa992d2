//! How to draw operators of `linear`: products of matrices, and matrices turned.

use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Opcode, TensorType};

use super::pieces::{Drawn, build, depth, dim, exponent, factor_bits, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::operators::{MatMul, ScaledMatMul, Transpose};

/// What N-25 and N-51 multiply: types of a and b, the offset, and how many binary places sums of products take.
pub(super) fn rows_to_multiply(dice: &mut Dice, size: u32) -> Result<(TensorType, TensorType, i64, i64), CaseError> {
    let bits = factor_bits(dice);
    let narrower = if dice.once_in(3) { (2, 8) } else { bits };
    let (depth, outer) = depth(dice, size);
    let (m, n, more) = (dim(dice, outer), dim(dice, outer), dice.range(0, size.into()));
    let offset = match dice.range(0, 3) {
        0 => 0,
        1 => more,
        _ => dice.range(0, more),
    };
    let (ea, eb) = (exponent(dice), exponent(dice));
    // SAFETY of the cast: at most MAX_SIZE.
    let a = ty(dice, bits, ea, &[m, depth + more as u32])?;
    let b = ty(dice, narrower, eb, &[n, depth])?;
    // Magnitudes of b bits are below 2^(b − 1): these sum to 62 binary places at most.
    let places = i64::from(a.bits()) + i64::from(b.bits()) - 2 + i64::from(depth.next_power_of_two().ilog2());
    Ok((a, b, offset, places))
}

/// Rows of a matrix that was drawn here.
pub(super) fn rows_of(ty: &TensorType) -> u32 {
    // SAFETY of the cast: a drawn matrix is small.
    ty.rows() as u32
}

impl Draw for MatMul {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let bits = if dice.once_in(2) { (2, 8) } else { (9, 16) };
        let long = dice.once_in(40);
        let depth = if long { MAX_REDUCTION as u32 } else { dim(dice, size.saturating_mul(4)) };
        let outer = if long { 2 } else { size };
        let (m, n) = (dim(dice, outer), dim(dice, outer));
        let (ea, eb, shift) = (exponent(dice), exponent(dice), shift(dice));
        let a = ty(dice, bits, ea, &[m, depth])?;
        let b = ty(dice, bits, eb, &[n, depth])?;
        let y = ty(dice, (2, 64), ea + eb - shift, &[m, n])?;
        Ok(build(Opcode::MatMul, vec![dice.tensor(&a)?, dice.tensor(&b)?], vec![shift], y))
    }
}

impl Draw for ScaledMatMul {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (a, b, offset, places) = rows_to_multiply(dice, size)?;
        let (er, ec, shift) = (exponent(dice), exponent(dice), shift(dice));
        let (m, n) = (rows_of(&a), rows_of(&b));
        let r = ty(dice, (2, 62 - places), er, &[m])?;
        let c = ty(dice, (2, 64 - places - i64::from(r.bits())), ec, &[n])?;
        let y = ty(dice, (2, 64), i64::from(a.exponent()) + i64::from(b.exponent()) + er + ec - shift, &[m, n])?;
        let operands = vec![dice.tensor(&a)?, dice.tensor(&b)?, dice.tensor(&r)?, dice.tensor(&c)?];
        Ok(build(Opcode::ScaledMatMul, operands, vec![offset, shift], y))
    }
}

impl Draw for Transpose {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (m, n, e) = (dim(dice, size), dim(dice, size), exponent(dice));
        let batch: &[u32] = if dice.once_in(3) { &[dim(dice, 4)] } else { &[] };
        let a = ty(dice, (2, 64), e, &[batch, &[m, n]].concat())?;
        let y = TensorType::new(a.bits(), a.exponent(), &[batch, &[n, m]].concat())?;
        Ok(build(Opcode::Transpose, vec![dice.tensor(&a)?], vec![], y))
    }
}
