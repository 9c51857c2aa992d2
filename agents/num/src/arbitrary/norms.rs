//! How to draw operators of `norms`: norms.

use tensorlink_types::Opcode;

use super::pieces::{Drawn, build, exponent, parts, reduced_shape, rows, ty};
use super::{CaseError, Dice, Draw};
use crate::bounds::{
    EPSILON_BOUND, MAX_BIAS_SHIFT, MIN_INVERSE_SHIFT, NORM_INPUT_BITS, norm_exponent, reciprocal_exponent,
};
use crate::operators::{InverseNorm, Norm};
use crate::tensor::Tensor;

impl Draw for Norm {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, ex, eg, t) =
            (reduced_shape(dice, size), exponent(dice), exponent(dice), dice.range(0, MAX_BIAS_SHIFT));
        let x = ty(dice, (2, NORM_INPUT_BITS.into()), ex, &dims)?;
        let accumulator = norm_exponent(x.bits()) + eg;
        // SAFETY of the cast: a drawn row has at most 4096 elements.
        let row = x.row() as u32;
        // Sometimes several runs of a row, each normalised by itself.
        let runs = if row.is_multiple_of(3) && dice.once_in(2) { 3 } else { 1 };
        let row = [row / runs];
        let gain = ty(dice, (2, 16), eg, &row)?;
        let bias = ty(dice, (2, 16), accumulator - t, &row)?;
        let epsilon = match dice.range(0, 5) {
            0 => 1,
            1 => EPSILON_BOUND - 1,
            2 => dice.range(1, EPSILON_BOUND - 1),
            _ => 1 + (dice.range(0, EPSILON_BOUND - 2) >> dice.range(20, 59)),
        };
        let shift = if dice.once_in(5) { dice.range(-63, 63) } else { dice.range(0, 36) };
        let y = ty(dice, (2, 64), accumulator - shift, &dims)?;
        let rows = rows(dice, &x);
        let operands = vec![Tensor::from_wide(x, &rows)?, dice.tensor(&gain)?, dice.tensor(&bias)?];
        let attributes = vec![dice.range(0, 1), epsilon, t, shift];
        Ok(build(Opcode::Norm, operands, attributes, y))
    }
}

impl Draw for InverseNorm {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
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
}
