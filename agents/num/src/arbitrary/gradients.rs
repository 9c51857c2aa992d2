//! How to draw operators of `gradients`: gradients of embeddings and heads.

use tensorlink_types::Opcode;
use tensorlink_types::operator::MAX_REDUCTION;

use super::pieces::{Drawn, build, dim, exponent, heads, ids, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::operators::{GatherGrad, GroupSum};

impl Draw for GatherGrad {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let long = dice.once_in(40);
        let tokens = if long { MAX_REDUCTION as u32 } else { dim(dice, size.saturating_mul(2)) };
        let (entries, width, more) = (dim(dice, 12), if long { 1 } else { dim(dice, size) }, dim(dice, 4) - 1);
        let (eg, shift) = (exponent(dice), shift(dice));
        let g = ty(dice, (2, 50), eg, &[width, tokens])?;
        let ids = ids(dice, tokens + more, entries)?;
        let y = ty(dice, (2, 64), eg - shift, &[entries, width])?;
        Ok(build(Opcode::GatherGrad, vec![dice.tensor(&g)?, ids], vec![shift], y))
    }
}

impl Draw for GroupSum {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (tokens, width, (heads, kv_heads)) = (dim(dice, size), dim(dice, size), heads(dice));
        let (e, shift) = (exponent(dice), shift(dice));
        let a = ty(dice, (2, 58), e, &[tokens, heads * width])?;
        let y = ty(dice, (2, 64), e - shift, &[tokens, kv_heads * width])?;
        Ok(build(Opcode::GroupSum, vec![dice.tensor(&a)?], vec![heads.into(), shift], y))
    }
}
