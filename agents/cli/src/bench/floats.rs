//! libtorch's floats, in the ways in which it multiplies them.

use anyhow::Result;
use tensorlink_tensor::Device;
use tensorlink_tensor::float::{FloatModel, Precision, Products};

use super::subject::Untrained;

/// A decoder in floats. libtorch multiplies 32-bit floats by MKL, which is slow on AMD processors; oneDNN is what it has beside it.
pub(super) struct Floats {
    mkl: FloatModel,
    one_dnn: FloatModel,
    bf16: FloatModel,
}

impl Floats {
    pub(super) fn new(untrained: Untrained, device: Device) -> Result<Self> {
        let Untrained { architecture, weights, float, .. } = untrained;
        let one_dnn = FloatModel::new(&architecture, &weights, device, Precision::F32)?;
        let bf16 = FloatModel::new(&architecture, &weights, device, Precision::Bf16)?;
        Ok(Self { mkl: float, one_dnn: one_dnn.with_products(Products::OneDnn), bf16 })
    }

    /// Each with its name.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, &FloatModel)> {
        [("f32 (MKL)", &self.mkl), ("f32 (oneDNN)", &self.one_dnn), ("bf16", &self.bf16)].into_iter()
    }
}
