//! Places of the largest elements (rules N-32, N-33 and N-37), in `int64`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::operators::{Choose, RowArgMax, RowPick};

use super::controls::control;
use super::{OnTorch, Torch};

/// The place of the first element of each row that none exceeds, by comparisons alone: which of several largest
/// elements an `argmax` names is for each device to choose.
fn first_largest(rows: &Tensor) -> Result<Tensor, TchError> {
    let length = rows.size2()?.1;
    let below = rows.f_lt_tensor(&rows.f_amax([1i64], true)?)?;
    let places = Tensor::f_arange(length, (Kind::Int64, rows.device()))?.f_expand_as(rows)?;
    places.f_masked_fill(&below, length)?.f_amin([1i64], false)
}

/// One element of each row; `place` is a column.
fn pick(rows: &Tensor, place: &Tensor) -> Result<Tensor, TchError> {
    rows.f_gather(1, &place.f_clamp(0, rows.size2()?.1 - 1)?, false)
}

/// Places and largest elements of the parts of rows, and controls.
fn choose(
    (place, best, controls): (&Tensor, &Tensor, &Tensor),
    length: i64,
    (parts, limit): (i64, i64),
) -> Result<Tensor, TchError> {
    let part = first_largest(&best.f_reshape([-1, parts])?)?.f_reshape([-1, 1])?;
    let within = pick(&place.f_reshape([-1, parts])?, &part)?;
    let choice = part.f_mul_scalar(length)?.f_add(&within)?.f_clamp(-limit, limit)?.f_reshape([-1])?;
    choice.f_masked_fill(&control(controls, 0)?.f_eq(0)?, 0)
}

impl OnTorch for RowArgMax {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        first_largest(&on.narrow(0)?.f_reshape([-1, self.depth as i64])?)
    }
}

impl OnTorch for RowPick {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        pick(&on.narrow(0)?.f_reshape([-1, self.depth as i64])?, &on.column(1)?)
    }
}

impl OnTorch for Choose {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let operands = (&on.operand(0)?, &on.operand(1)?, &on.operand(2)?);
        choose(operands, self.length, (self.parts as i64, on.limit))
    }
}
