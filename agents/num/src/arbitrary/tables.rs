//! How to draw operators of `tables`: functions given by tables.

use tensorlink_types::{Opcode, TensorType};

use super::pieces::{Drawn, build, causal, exponent, per_row, shape, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::bounds::{COEFFICIENT_BOUND, EXP_BITS, EXP_EXPONENT};
use crate::operators::{ExpNeg, Lookup};
use crate::tables::exp2_table;

impl Draw for Lookup {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let dims = shape(dice, size);
        let log = if dice.once_in(10) { 12 } else { dice.range(0, 6) };
        let fraction = dice.range(1, 16);
        let (ex, et, shift) = (exponent(dice), dice.range(0, 30), shift(dice));
        let x = ty(dice, (2, 63), ex, &dims)?;
        let table = ty(dice, (2, 32), et, &[(1 << log) + 1])?;
        let y = ty(dice, (2, 64), et + fraction - shift, &dims)?;
        // Mostly a domain about as wide as the input's range, so that cells inside and both ends are hit.
        let (input_shift, low) = if dice.once_in(4) {
            (dice.range(-63, 63), dice.mantissa(COEFFICIENT_BOUND - 1))
        } else {
            let reach = 1i64 << (log + fraction - 1);
            (i64::from(x.bits()) - log - fraction + dice.range(-1, 1), -reach + dice.range(-3, 3))
        };
        let attributes = vec![input_shift, low, fraction, shift];
        Ok(build(Opcode::Lookup, vec![dice.tensor(&x)?, dice.tensor(&table)?], attributes, y))
    }
}

impl Draw for ExpNeg {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, e) = (shape(dice, size), dice.range(0, 20));
        let a = ty(dice, (2, 36), e, &dims)?;
        let max = ty(dice, (2, 36), e, &per_row(&dims))?;
        let table = if dice.once_in(4) {
            let ty = ty(dice, (2, 32), 24, &[257])?;
            dice.tensor(&ty)?
        } else {
            exp2_table()?
        };
        let (multiplier, input_shift) =
            if dice.once_in(4) { (dice.range(1, (1 << 24) - 1), dice.range(-63, 63)) } else { (23637, e - 2) };
        let y = TensorType::new(EXP_BITS, EXP_EXPONENT, &dims)?;
        let operands = vec![dice.tensor(&a)?, dice.tensor(&max)?, table];
        let causal = causal(dice, &dims);
        Ok(build(Opcode::ExpNeg, operands, vec![multiplier, input_shift, causal], y))
    }
}
