//! Transposed matrices (rule N-12). Products are computed in `matmul`.

use tch::{TchError, Tensor};
use tensorlink_num::operators::{MatMul, ScaledMatMul, Transpose};

use super::{OnTorch, Torch};

impl OnTorch for Transpose {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        on.narrow(0)?.f_transpose(-2, -1)?.f_contiguous()
    }
}

// Products, by functions of their own.
impl OnTorch for MatMul {}
impl OnTorch for ScaledMatMul {}
