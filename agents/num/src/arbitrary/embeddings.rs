//! How to draw operators of `embeddings`: rows chosen by ids.

use tensorlink_types::Opcode;

use super::pieces::{Drawn, build, dim, exponent, ids, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::operators::Gather;

impl Draw for Gather {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (entries, width, tokens, more) = (dim(dice, 40), dim(dice, size), dim(dice, size), dim(dice, 4) - 1);
        let (et, es, shift) = (exponent(dice), exponent(dice), shift(dice));
        let table = ty(dice, (2, 62), et, &[entries, width])?;
        let scale = ty(dice, (2, (64 - i64::from(table.bits())).max(2)), es, &[entries + more])?;
        let ids = ids(dice, tokens + more, entries)?;
        let y = ty(dice, (2, 64), et + es - shift, &[tokens, width])?;
        let operands = vec![dice.tensor(&table)?, dice.tensor(&scale)?, ids];
        Ok(build(Opcode::Gather, operands, vec![shift], y))
    }
}
