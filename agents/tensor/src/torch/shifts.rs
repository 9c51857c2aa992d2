//! Rows shifted by places of their own (rules N-49 and N-50), in `int64`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::bounds::MAX_ROW_SHIFT;
use tensorlink_num::operators::{RowShift, ShiftRows, ShiftedMatMul};

use super::{OnTorch, Torch, rescale_each};

/// Shifts of rows as rules N-50 and N-51 take them, as a column.
pub(crate) fn row_shifts(shifts: &Tensor) -> Result<Tensor, TchError> {
    shifts.f_to_kind(Kind::Int64)?.f_reshape([-1, 1])?.f_clamp(0, MAX_ROW_SHIFT)
}

impl OnTorch for RowShift {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let a = on.operand(0)?.f_reshape([-1, self.depth as i64])?;
        let largest = a.f_abs()?.f_amax([1i64], true)?;
        // As many powers of two are at most a magnitude as it has bits.
        let one = Tensor::f_ones([1], (Kind::Int64, a.device()))?;
        let powers = one.f_bitwise_left_shift(&Tensor::f_arange(63, (Kind::Int64, a.device()))?)?;
        let length = largest.f_ge_tensor(&powers)?.f_sum_dim_intlist(&[1i64][..], false, Kind::Int64)?;
        length.f_sub_scalar(i64::from(self.bits) - 1)?.f_clamp_min(0)
    }
}

impl OnTorch for ShiftRows {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let a = on.matrix(0)?;
        let places = row_shifts(&on.operand(1)?)?.f_expand_as(&a)?;
        rescale_each(&a, &places, on.limit)
    }
}

// A product, by a function of its own.
impl OnTorch for ShiftedMatMul {}
