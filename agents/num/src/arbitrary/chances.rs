//! How to draw operators of `chances`: what is drawn for each element.

use tensorlink_types::Opcode;

use super::pieces::{Drawn, build, coefficient, exponent, per_row, shape, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::bounds::DITHER_BITS;
use crate::operators::{Dither, Dropout};

/// A word of a counter, half of the time a whole one.
fn stream(dice: &mut Dice) -> i64 {
    let word = dice.bits(32) as i64;
    word >> dice.range(-32, 31).max(0)
}

impl Draw for Dropout {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, ea, ey) = (shape(dice, size), exponent(dice), exponent(dice));
        let a = ty(dice, (2, 62), ea, &dims)?;
        let y = ty(dice, (2, 64), ey, &dims)?;
        let keep = match dice.range(0, 11) {
            0 => 1,
            1 => 1 << 32,
            _ => dice.range(1 << 30, 1 << 32),
        };
        let attributes = vec![keep, stream(dice), coefficient(dice, a.limit()), shift(dice)];
        Ok(build(Opcode::Dropout, vec![dice.tensor(&a)?], attributes, y))
    }
}

impl Draw for Dither {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (dims, ep, ez) = (shape(dice, size), exponent(dice), exponent(dice));
        let p = ty(dice, (2, 58), ep, &dims)?;
        let z = ty(dice, (2, DITHER_BITS.into()), ez, &per_row(&dims))?;
        let bits = dice.range(0, (60 - i64::from(p.bits())).min(32));
        let y = ty(dice, (2, 64), ep - ez + bits, &dims)?;
        let stream = stream(dice);
        Ok(build(Opcode::Dither, vec![dice.tensor(&p)?, dice.tensor(&z)?], vec![bits, stream], y))
    }
}
