//! How to draw operators of `roots`: quotients by roots.

use tensorlink_types::Opcode;

use super::pieces::{Drawn, build, exponent, shape, ty};
use super::{CaseError, Dice, Draw};
use crate::bounds::{MAX_RATIO_PLACES, MAX_SHRINK_PLACES, SHRINK_BOUND};
use crate::operators::{Ratio, Shrink};

impl Draw for Ratio {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, em, half) = (shape(dice, size), exponent(dice), dice.range(-20, 20));
        let m = ty(dice, (2, 60), em, &dims)?;
        let v = ty(dice, (2, 64), 2 * half, &dims)?;
        let bits = dice.range(0, (60 - i64::from(m.bits())).clamp(0, MAX_RATIO_PLACES));
        let floor = 1 + (dice.range(0, (1 << 40) - 2) >> dice.range(0, 39));
        let y = ty(dice, (2, 64), em - half + bits, &dims)?;
        Ok(build(Opcode::Ratio, vec![dice.tensor(&m)?, dice.tensor(&v)?], vec![bits, floor], y))
    }
}

impl Draw for Shrink {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, half) = (shape(dice, size), dice.range(-20, 20));
        let s = ty(dice, (2, 64), 2 * half, &dims)?;
        let (limit, bits) =
            (1 + (dice.range(0, SHRINK_BOUND - 2) >> dice.range(0, 30)), dice.range(0, MAX_SHRINK_PLACES));
        let y = ty(dice, (2, 64), bits, &dims)?;
        Ok(build(Opcode::Shrink, vec![dice.tensor(&s)?], vec![limit, bits], y))
    }
}
