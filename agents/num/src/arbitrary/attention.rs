//! How to draw operators of `attention`: heads.

use tensorlink_types::Opcode;

use super::pieces::{Drawn, build, depth, dim, exponent, factor_bits, heads, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::operators::{HeadMix, HeadScores};

impl Draw for HeadScores {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let bits = factor_bits(dice);
        let (width, outer) = depth(dice, size);
        let (heads, kv_heads) = heads(dice);
        let (tokens, keys) = (dim(dice, outer), dim(dice, outer));
        let (eq, ek, shift) = (exponent(dice), exponent(dice), shift(dice));
        let q = ty(dice, bits, eq, &[tokens, heads * width])?;
        let k = ty(dice, bits, ek, &[keys, kv_heads * width])?;
        let y = ty(dice, (2, 64), eq + ek - shift, &[heads, tokens, keys])?;
        Ok(build(Opcode::HeadScores, vec![dice.tensor(&q)?, dice.tensor(&k)?], vec![heads.into(), shift], y))
    }
}

impl Draw for HeadMix {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let bits = factor_bits(dice);
        let (keys, outer) = depth(dice, size);
        let (heads, kv_heads) = heads(dice);
        let (tokens, width) = (dim(dice, outer), dim(dice, outer));
        let (ep, ev, shift) = (exponent(dice), exponent(dice), shift(dice));
        let p = ty(dice, bits, ep, &[heads, tokens, keys])?;
        let v = ty(dice, bits, ev, &[kv_heads * width, keys])?;
        let y = ty(dice, (2, 64), ep + ev - shift, &[tokens, heads * width])?;
        Ok(build(Opcode::HeadMix, vec![dice.tensor(&p)?, dice.tensor(&v)?], vec![heads.into(), shift], y))
    }
}
