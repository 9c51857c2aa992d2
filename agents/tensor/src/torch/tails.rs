//! How much of rows lies above a threshold, and the threshold (rules N-34 and N-35), in `int64`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::operators::{TailSum, Threshold};

use super::controls::control;
use super::{OnTorch, Torch};

/// Sums of rows of parts; `least` has one element for each row.
fn tail_sum(a: &Tensor, w: Option<&Tensor>, least: &Tensor) -> Result<Tensor, TchError> {
    let below = a.f_lt_tensor(least)?;
    let units = match w {
        Some(w) => w.f_masked_fill(&below, 0)?,
        None => below.f_logical_not()?.f_to_kind(Kind::Int64)?,
    };
    units.f_sum_dim_intlist(&[2i64][..], false, Kind::Int64)
}

/// Thresholds, counts, masses, totals, controls.
fn threshold(operands: [&Tensor; 5], step: i64, limit: i64) -> Result<Tensor, TchError> {
    let [t, counts, masses, totals, controls] = operands;
    let t = t.f_reshape([-1])?;
    let sum = |of: &Tensor| of.f_reshape([t.numel() as i64, -1])?.f_sum_dim_intlist(&[1i64][..], false, Kind::Int64);
    let (k, q) = (control(controls, 3)?.f_clamp_min(1)?, control(controls, 4)?.f_clamp(1, 1 << 16)?);
    let enough = sum(counts)?.f_ge_tensor(&k)?;
    let heavy = sum(masses)?.f_bitwise_left_shift_tensor_scalar(16)?.f_ge_tensor(&sum(totals)?.f_mul(&q)?)?;
    let raised = t.f_add_scalar(step)?.f_clamp(-limit, limit)?;
    raised.f_where_self(&enough.f_logical_or(&heavy)?, &t)
}

impl OnTorch for TailSum {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let parts = [-1, self.parts as i64, self.depth as i64];
        let part = |i: usize| on.operand(i)?.f_reshape(parts);
        let least = on.operand(2)?.f_add_scalar(self.bound)?.f_reshape([-1, 1, 1])?;
        let w = if self.weighted { Some(part(1)?) } else { None };
        on.rescale(&tail_sum(&part(0)?, w.as_ref(), &least)?, self.shift)
    }
}

impl OnTorch for Threshold {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let operands = [&on.operand(0)?, &on.operand(1)?, &on.operand(2)?, &on.operand(3)?, &on.operand(4)?];
        threshold(operands, self.step, on.limit)
    }
}
