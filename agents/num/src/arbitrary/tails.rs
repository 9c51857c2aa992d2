//! How to draw operators of `tails`: tails and thresholds.

use tensorlink_types::Opcode;
use tensorlink_types::operator::MAX_REDUCTION;

use super::parts::{Parts, controls, threshold, tied};
use super::pieces::{Drawn, build, dim, exponent, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::bounds::COEFFICIENT_BOUND;
use crate::operators::{TailSum, Threshold};
use crate::tensor::Tensor;

impl Draw for TailSum {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (parts, ea, ew, shift) = (Parts::draw(dice, size), exponent(dice), exponent(dice), shift(dice));
        let a = ty(dice, (2, 64), ea, &parts.whole())?;
        let w = ty(dice, (2, 32), ew, &parts.whole())?;
        let (t, bound) = threshold(dice, &a, parts.rows)?;
        let weighted = dice.range(0, 1);
        // A count is mostly wanted as it is.
        let shift = if weighted == 0 && dice.once_in(2) { 0 } else { shift };
        let y = ty(dice, (2, 64), if weighted == 1 { ew } else { 0 } - shift, &parts.reduced())?;
        Ok(build(Opcode::TailSum, vec![tied(dice, a)?, dice.tensor(&w)?, t], vec![bound, weighted, shift], y))
    }
}

impl Draw for Threshold {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (rows, et, em) = (dim(dice, size), exponent(dice), exponent(dice));
        let parts = if dice.once_in(60) { MAX_REDUCTION as u32 } else { dim(dice, size) };
        let rows = if parts > 100 { 1 } else { rows };
        let t = ty(dice, (2, 61), et, &[rows])?;
        let few = dice.once_in(2);
        let counts = ty(dice, if few { (3, 6) } else { (2, 49) }, 0, &[rows, parts])?;
        let masses = ty(dice, (2, 32), em, &[rows, parts])?;
        // Mostly not negative, as counts and exponentials are, and a mass at most its total.
        let natural = !dice.once_in(4);
        let sign = |x: i64| if natural { x.abs() } else { x };
        let counted: Vec<i64> = (0..counts.elements()).map(|_| sign(dice.mantissa(counts.limit()))).collect();
        let total: Vec<i64> = (0..masses.elements()).map(|_| sign(dice.mantissa(masses.limit()))).collect();
        let mass: Vec<i64> = total
            .iter()
            .map(|total| if natural { dice.range(0, *total) } else { dice.mantissa(masses.limit()) })
            .collect();
        let step = (COEFFICIENT_BOUND - 1) >> dice.range(0, 40);
        // About as many tokens as are counted.
        let most = counted.iter().fold(0i64, |sum, x| sum.saturating_add(x.abs())) / i64::from(rows);
        let t = dice.tensor(&t)?;
        let y = t.ty().clone();
        let operands = vec![
            t,
            Tensor::from_wide(counts, &counted)?,
            Tensor::from_wide(masses.clone(), &mass)?,
            Tensor::from_wide(masses, &total)?,
            controls(dice, (18, 64), rows, most)?,
        ];
        Ok(build(Opcode::Threshold, operands, vec![step], y))
    }
}
