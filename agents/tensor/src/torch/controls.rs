//! Controls of rows: what operators of sampling read of them.

use tch::{TchError, Tensor};

/// Numbers of a row of controls.
const CONTROLS: i64 = 7;

/// One of each row's controls.
pub(super) fn control(controls: &Tensor, index: i64) -> Result<Tensor, TchError> {
    controls.f_reshape([-1, CONTROLS])?.f_select(1, index)
}
