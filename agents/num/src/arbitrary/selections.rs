//! How to draw operators of `selections`: elements that are moved.

use tensorlink_types::{Opcode, TensorType};

use super::pieces::{Drawn, build, dim, exponent, ty};
use super::{CaseError, Dice, Draw};
use crate::operators::{AtStep, Slice};

impl Draw for AtStep {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (width, e) = (dim(dice, size), exponent(dice));
        // Many rows once in a while, so that the step is not always beyond them.
        let rows = if dice.once_in(2) { dim(dice, 9) } else { 300 };
        let flat = dice.once_in(3);
        let dims = if flat { vec![rows] } else { vec![rows, width] };
        let table = ty(dice, (2, 64), e, &dims)?;
        let y = TensorType::new(table.bits(), table.exponent(), &[if flat { 1 } else { width }])?;
        Ok(build(Opcode::AtStep, vec![dice.tensor(&table)?], vec![], y))
    }
}

impl Draw for Slice {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (rows, width, more, e) = (dim(dice, size), dim(dice, size), dim(dice, size) - 1, exponent(dice));
        let a = ty(dice, (2, 64), e, &[rows, width + more])?;
        let y = TensorType::new(a.bits(), a.exponent(), &[rows, width])?;
        let offset = dice.range(0, more.into());
        Ok(build(Opcode::Slice, vec![dice.tensor(&a)?], vec![offset], y))
    }
}
