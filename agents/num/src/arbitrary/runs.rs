//! How to draw operators of `runs`: elements combined with runs.

use tensorlink_types::Opcode;

use super::pieces::{Drawn, build, coefficient, exponent, shape, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::operators::{RowCombine, RowMul};

/// A shape of one element for each of its rows, or of one for all.
fn leading(dice: &mut Dice, dims: &[u32]) -> Vec<u32> {
    let keep = dice.range(0, dims.len() as i64) as usize;
    match dims.get(..keep) {
        Some(head) if !head.is_empty() => head.to_vec(),
        _ => vec![1],
    }
}

impl Draw for RowCombine {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let dims = shape(dice, size);
        let (ea, eb, ey) = (exponent(dice), exponent(dice), exponent(dice));
        let a = ty(dice, (2, 62), ea, &dims)?;
        let fewer = leading(dice, &dims);
        let b = ty(dice, (2, 62), eb, &fewer)?;
        let y = ty(dice, (2, 64), ey, &dims)?;
        let attributes = vec![coefficient(dice, a.limit()), coefficient(dice, b.limit()), shift(dice)];
        Ok(build(Opcode::RowCombine, vec![dice.tensor(&a)?, dice.tensor(&b)?], attributes, y))
    }
}

impl Draw for RowMul {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let dims = shape(dice, size);
        let (ea, eb, shift) = (exponent(dice), exponent(dice), shift(dice));
        let a = ty(dice, (2, 62), ea, &dims)?;
        let fewer = leading(dice, &dims);
        let b = ty(dice, (2, (64 - i64::from(a.bits())).max(2)), eb, &fewer)?;
        let y = ty(dice, (2, 64), ea + eb - shift, &dims)?;
        Ok(build(Opcode::RowMul, vec![dice.tensor(&a)?, dice.tensor(&b)?], vec![shift], y))
    }
}
