//! How to draw operators of `gumbel`: Gumbel draws.

use std::sync::OnceLock;

use tensorlink_types::Opcode;

use super::parts::{controls, threshold, tied};
use super::pieces::{Drawn, build, dim, shift, ty};
use super::{CaseError, Dice, Draw};
use crate::bounds::{GUMBEL_EXPONENT, GUMBEL_TABLE_LEN, MAX_PERTURB_PLACES, PERTURB_EXPONENT};
use crate::operators::Perturb;
use crate::tables::{TableError, gumbel_table};
use crate::tensor::Tensor;

/// The table of every case that has the real one.
fn table() -> Result<Tensor, TableError> {
    static TABLE: OnceLock<Result<Tensor, TableError>> = OnceLock::new();
    TABLE.get_or_init(gumbel_table).clone()
}

impl Draw for Perturb {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (rows, length, shift) = (dim(dice, size), dim(dice, size.saturating_mul(4)), shift(dice));
        let a_bits = dice.range(2, 32);
        // Magnitudes of b bits are below 2^(b − 1): elements and draws stay below 2^61 each.
        let places = dice.range(0, MAX_PERTURB_PLACES.min(62 - a_bits));
        let a = ty(dice, (a_bits, a_bits), PERTURB_EXPONENT - places, &[rows, length])?;
        let table = if dice.once_in(8) {
            let ty = ty(dice, (2, 31), GUMBEL_EXPONENT.into(), &[GUMBEL_TABLE_LEN as u32])?;
            dice.tensor(&ty)?
        } else {
            table()?
        };
        let controls = controls(dice, (14, 32), rows, length.into())?;
        let (t, bound) = threshold(dice, &a, rows)?;
        let shift = if dice.once_in(2) { dice.range(10, 30) } else { shift };
        let y = ty(dice, (2, 64), PERTURB_EXPONENT - shift, &[rows, length])?;
        Ok(build(Opcode::Perturb, vec![tied(dice, a)?, t, controls, table], vec![bound, shift], y))
    }
}
