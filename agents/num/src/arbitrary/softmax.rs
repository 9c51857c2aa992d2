//! How to draw operators of `softmax`: shares of sums.

use tensorlink_types::Opcode;

use super::pieces::{Drawn, build, exponent, per_row, shape, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::operators::{Normalize, OneHotSub};
use crate::tensor::Tensor;

impl Draw for Normalize {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, ep, ez) = (shape(dice, size), exponent(dice), exponent(dice));
        let p = ty(dice, (2, 30), ep, &dims)?;
        let z = ty(dice, (2, 61), ez, &per_row(&dims))?;
        let bits = dice.range(0, (60 - i64::from(p.bits())).min(32));
        let y = ty(dice, (2, 64), ep - ez + bits, &dims)?;
        Ok(build(Opcode::Normalize, vec![dice.tensor(&p)?, dice.tensor(&z)?], vec![bits], y))
    }
}

impl Draw for OneHotSub {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, e, shift) = (shape(dice, size), exponent(dice), shift(dice));
        let p = ty(dice, (2, 60), e, &dims)?;
        let label = ty(dice, (5, 32), 0, &per_row(&dims))?;
        let classes = p.row() as i64;
        let labels: Vec<i64> = (0..label.elements()).map(|_| dice.range(-1, classes).min(label.limit())).collect();
        let y = ty(dice, (2, 64), e - shift, &dims)?;
        let one = dice.bits(40) as i64;
        let one = one >> dice.range(0, 40);
        Ok(build(Opcode::OneHotSub, vec![dice.tensor(&p)?, Tensor::from_wide(label, &labels)?], vec![one, shift], y))
    }
}
