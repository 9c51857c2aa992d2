//! Parts of rows, and the row for a step (rules N-44 and N-47).

use tch::{TchError, Tensor};
use tensorlink_num::operators::{AtStep, Slice};

use super::{OnTorch, Torch};

impl OnTorch for AtStep {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let rows = on.narrow(0)?.f_reshape([-1, self.width as i64])?;
        rows.f_select(0, i64::from(on.context.step).min(rows.size2()?.0 - 1))
    }
}

impl OnTorch for Slice {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        on.narrow(0)?.f_reshape([-1, on.row])?.f_narrow(1, self.offset as i64, self.width as i64)
    }
}
