//! How to draw operators of `sampling`: samples of a data set.

use tensorlink_types::{Opcode, TensorType};

use super::pieces::{Drawn, build, dim, exponent, ty};
use super::{CaseError, Dice, Draw};
use crate::operators::Sample;

impl Draw for Sample {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
        let (rows, batch, e) = (dim(dice, 50), dim(dice, size), exponent(dice));
        let width = dim(dice, size);
        let flat = dice.once_in(3);
        let dims = |rows| if flat { vec![rows] } else { vec![rows, width] };
        let data = ty(dice, (2, 64), e, &dims(rows))?;
        let y = TensorType::new(data.bits(), data.exponent(), &dims(batch))?;
        let last = (1i64 << 32) - i64::from(batch);
        let first_row = if dice.once_in(6) { last } else { dice.range(0, 10_000) };
        Ok(build(Opcode::Sample, vec![dice.tensor(&data)?], vec![first_row], y))
    }
}
