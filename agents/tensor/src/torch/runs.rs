//! An element of the second operand for a run of the first (rules N-38 and N-39), in `int64`.

use tch::{TchError, Tensor};
use tensorlink_num::operators::{RowCombine, RowMul};

use super::{OnTorch, Torch};

/// A matrix with a row for each element of `b`, and `b` as a column.
fn runs(a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    let column = b.f_reshape([-1, 1])?;
    Ok((a.f_reshape([column.numel() as i64, -1])?, column))
}

impl OnTorch for RowCombine {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let (a, b) = runs(&on.operand(0)?, &on.operand(1)?)?;
        on.rescale(&a.f_mul_scalar(self.ca)?.f_add(&b.f_mul_scalar(self.cb)?)?, self.shift)
    }
}

impl OnTorch for RowMul {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let (a, b) = runs(&on.operand(0)?, &on.operand(1)?)?;
        on.rescale(&a.f_mul(&b)?, self.shift)
    }
}
