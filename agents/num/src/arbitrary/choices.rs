//! How to draw operators of `choices`: places of elements.

use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Opcode, TensorType};

use super::parts::{Parts, controls, places, tied};
use super::pieces::{Drawn, build, dim, exponent, ty};
use super::{CaseError, Dice, Draw};
use crate::bounds::CHOICE_BITS;
use crate::operators::{Choose, RowArgMax, RowPick};

impl Draw for RowArgMax {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (parts, e) = (Parts::draw(dice, size), exponent(dice));
        let a = ty(dice, (2, 64), e, &parts.whole())?;
        let y = TensorType::new(CHOICE_BITS, 0, &parts.reduced())?;
        Ok(build(Opcode::RowArgMax, vec![tied(dice, a)?], vec![], y))
    }
}

impl Draw for RowPick {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (parts, e) = (Parts::draw(dice, size), exponent(dice));
        let a = ty(dice, (2, 64), e, &parts.whole())?;
        let place = ty(dice, (2, 64), 0, &parts.reduced())?;
        let y = TensorType::new(a.bits(), a.exponent(), &parts.reduced())?;
        let operands = vec![dice.tensor(&a)?, places(dice, place, parts.length)?];
        Ok(build(Opcode::RowPick, operands, vec![], y))
    }
}

impl Draw for Choose {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (rows, eb) = (dim(dice, size), exponent(dice));
        let parts = if dice.once_in(60) { MAX_REDUCTION as u32 } else { dim(dice, size) };
        let rows = if parts > 100 { 1 } else { rows };
        let length = if dice.once_in(4) { MAX_REDUCTION as u32 } else { dim(dice, 50) };
        let place = ty(dice, (2, 61), 0, &[rows, parts])?;
        let best = ty(dice, (2, 64), eb, &[rows, parts])?;
        let y = TensorType::new(CHOICE_BITS, 0, &[rows])?;
        let operands =
            vec![places(dice, place, length)?, tied(dice, best)?, controls(dice, (2, 64), rows, length.into())?];
        Ok(build(Opcode::Choose, operands, vec![length.into()], y))
    }
}
