//! How to draw operators of `positions`: positions.

use tensorlink_types::Opcode;

use super::pieces::{Drawn, build, dim, exponent, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::bounds::MAX_ROPE_EXPONENT;
use crate::operators::Rope;

impl Draw for Rope {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (heads, width) = (dim(dice, 4), 1 + dim(dice, size));
        let rotating = 2 * dim(dice, width / 2);
        let (tokens, more) = (dim(dice, size), dim(dice, 3) - 1);
        let (ex, f, shift) = (exponent(dice), dice.range(0, MAX_ROPE_EXPONENT.into()), shift(dice));
        let row = heads * width;
        let dims = if dice.once_in(4) { vec![1, tokens, row] } else { vec![tokens, row] };
        let x = ty(dice, (2, 16), ex, &dims)?;
        let table = ty(dice, (2, 16), f, &[tokens + more, rotating])?;
        let y = ty(dice, (2, 64), ex + f - shift, &dims)?;
        Ok(build(Opcode::Rope, vec![dice.tensor(&x)?, dice.tensor(&table)?], vec![heads.into(), shift], y))
    }
}
