//! How to draw operators of `shifts`: rows that are shifted.

use tensorlink_types::{Opcode, TensorType};

use super::linear::{rows_of, rows_to_multiply};
use super::pieces::{Drawn, build, exponent, parts, per_row, reduced_shape, rows, shape, ty};
use super::{CaseError, Dice, Draw};
use crate::bounds::{MAX_ROW_SHIFT, MIN_SHIFTED_SHIFT};
use crate::operators::{RowShift, ShiftRows, ShiftedMatMul};
use crate::tensor::{Tensor, TensorError};

/// Shifts of rows, some of them beyond what is taken.
fn shifts(dice: &mut Dice, ty: TensorType) -> Result<Tensor, TensorError> {
    let limit = ty.limit();
    let shift = |dice: &mut Dice| match dice.range(0, 5) {
        0 => dice.mantissa(limit),
        _ => dice.range(0, MAX_ROW_SHIFT + 1).min(limit),
    };
    let values: Vec<i64> = (0..ty.elements()).map(|_| shift(dice)).collect();
    Tensor::from_wide(ty, &values)
}

impl Draw for RowShift {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, ea) = (reduced_shape(dice, size), exponent(dice));
        let a = ty(dice, (2, 64), ea, &dims)?;
        let reduced = parts(dice, &a);
        // Rows of all magnitudes.
        let wide = rows(dice, &a);
        let row = usize::try_from(a.row()).unwrap_or(usize::MAX);
        let values: Vec<i64> = wide
            .chunks(row)
            .flat_map(|row| {
                let places = dice.range(0, i64::from(a.bits()));
                row.iter().map(move |x| x >> places.min(63)).collect::<Vec<_>>()
            })
            .collect();
        let y = ty(dice, (8, 64), 0, &reduced)?;
        let bits = dice.range(2, 64);
        Ok(build(Opcode::RowShift, vec![Tensor::from_wide(a, &values)?], vec![bits], y))
    }
}

impl Draw for ShiftRows {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, ea) = (shape(dice, size), exponent(dice));
        let a = ty(dice, (2, 62), ea, &dims)?;
        let s = ty(dice, (2, 64), 0, &per_row(&dims))?;
        let y = ty(dice, (2, 64), ea, &dims)?;
        let shifts = shifts(dice, s)?;
        Ok(build(Opcode::ShiftRows, vec![dice.tensor(&a)?, shifts], vec![], y))
    }
}

impl Draw for ShiftedMatMul {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (a, b, offset, places) = rows_to_multiply(dice, size)?;
        let (m, n, ec) = (rows_of(&a), rows_of(&b), exponent(dice));
        let s = ty(dice, (2, 64), 0, &[m])?;
        let c = ty(dice, (2, 63 - places), ec, &[n])?;
        let shift = if dice.once_in(5) { dice.range(MIN_SHIFTED_SHIFT, 63) } else { dice.range(-2, 40) };
        let y = ty(dice, (2, 64), i64::from(a.exponent()) + i64::from(b.exponent()) + ec - shift, &[m, n])?;
        let operands = vec![dice.tensor(&a)?, dice.tensor(&b)?, shifts(dice, s)?, dice.tensor(&c)?];
        Ok(build(Opcode::ShiftedMatMul, operands, vec![offset, shift], y))
    }
}
