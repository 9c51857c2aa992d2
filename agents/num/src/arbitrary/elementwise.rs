//! How to draw operators of `elementwise`: elements combined.

use tensorlink_types::Opcode;

use super::pieces::{Drawn, build, coefficient, divisor_shape, exponent, shape, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::operators::{Combine, Mul, Relu, ReluGrad, Scale};

impl Draw for Combine {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let dims = shape(dice, size);
        let (ea, eb, ey) = (exponent(dice), exponent(dice), exponent(dice));
        let a = ty(dice, (2, 62), ea, &dims)?;
        let small = divisor_shape(dice, &dims);
        let b = ty(dice, (2, 62), eb, &small)?;
        let y = ty(dice, (2, 64), ey, &dims)?;
        let attributes = vec![coefficient(dice, a.limit()), coefficient(dice, b.limit()), shift(dice)];
        Ok(build(Opcode::Combine, vec![dice.tensor(&a)?, dice.tensor(&b)?], attributes, y))
    }
}

impl Draw for Scale {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, ea, ey) = (shape(dice, size), exponent(dice), exponent(dice));
        let a = ty(dice, (2, 62), ea, &dims)?;
        let y = ty(dice, (2, 64), ey, &dims)?;
        let attributes = vec![coefficient(dice, a.limit()), shift(dice)];
        Ok(build(Opcode::Scale, vec![dice.tensor(&a)?], attributes, y))
    }
}

impl Draw for Mul {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let dims = shape(dice, size);
        let (ea, eb, shift) = (exponent(dice), exponent(dice), shift(dice));
        let a = ty(dice, (2, 62), ea, &dims)?;
        let small = divisor_shape(dice, &dims);
        let b = ty(dice, (2, (64 - i64::from(a.bits())).max(2)), eb, &small)?;
        let y = ty(dice, (2, 64), ea + eb - shift, &dims)?;
        Ok(build(Opcode::Mul, vec![dice.tensor(&a)?, dice.tensor(&b)?], vec![shift], y))
    }
}

impl Draw for Relu {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, e) = (shape(dice, size), exponent(dice));
        let a = ty(dice, (2, 64), e, &dims)?;
        Ok(build(Opcode::Relu, vec![dice.tensor(&a)?], vec![], a))
    }
}

impl Draw for ReluGrad {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, e) = (shape(dice, size), exponent(dice));
        let dy = ty(dice, (2, 64), e, &dims)?;
        let x = ty(dice, (2, 64), e, &dims)?;
        Ok(build(Opcode::ReluGrad, vec![dice.tensor(&dy)?, dice.tensor(&x)?], vec![], dy))
    }
}
