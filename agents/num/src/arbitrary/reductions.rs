//! How to draw operators of `reductions`: reductions of rows.

use tensorlink_types::{Opcode, TensorType};

use super::pieces::{Drawn, build, causal, exponent, parts, per_row, reduced_shape, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::operators::{RowAbsMax, RowMax, RowSum};

impl Draw for RowMax {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, e) = (reduced_shape(dice, size), exponent(dice));
        let a = ty(dice, (2, 64), e, &dims)?;
        let causal = causal(dice, &dims);
        let reduced = if causal == 1 { per_row(&dims) } else { parts(dice, &a) };
        let y = TensorType::new(a.bits(), a.exponent(), &reduced)?;
        Ok(build(Opcode::RowMax, vec![dice.tensor(&a)?], vec![causal], y))
    }
}

impl Draw for RowAbsMax {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, e) = (reduced_shape(dice, size), exponent(dice));
        let a = ty(dice, (2, 64), e, &dims)?;
        let y = TensorType::new(a.bits(), a.exponent(), &parts(dice, &a))?;
        Ok(build(Opcode::RowAbsMax, vec![dice.tensor(&a)?], vec![], y))
    }
}

impl Draw for RowSum {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, e, shift) = (reduced_shape(dice, size), exponent(dice), shift(dice));
        let a = ty(dice, (2, 50), e, &dims)?;
        let reduced = parts(dice, &a);
        let y = ty(dice, (2, 64), e - shift, &reduced)?;
        Ok(build(Opcode::RowSum, vec![dice.tensor(&a)?], vec![shift], y))
    }
}
