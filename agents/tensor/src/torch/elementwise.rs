//! Elements combined with others (rules N-13 to N-17), in `int64`.

use tch::{TchError, Tensor};
use tensorlink_num::operators::{Combine, Mul, Relu, ReluGrad, Scale};

use super::{OnTorch, Torch};

impl OnTorch for Combine {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let (a, b) = on.repeated()?;
        on.rescale(&a.f_mul_scalar(self.ca)?.f_add(&b.f_mul_scalar(self.cb)?)?, self.shift)
    }
}

impl OnTorch for Scale {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        on.rescale(&on.operand(0)?.f_mul_scalar(self.c)?, self.shift)
    }
}

impl OnTorch for Mul {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        let (a, b) = on.repeated()?;
        on.rescale(&a.f_mul(&b)?, self.shift)
    }
}

impl OnTorch for Relu {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        on.narrow(0)?.f_clamp_min(0)
    }
}

impl OnTorch for ReluGrad {
    fn on_torch(&self, on: &Torch<'_>) -> Result<Tensor, TchError> {
        on.narrow(0)?.f_masked_fill(&on.narrow(1)?.f_le(0)?, 0)
    }
}
