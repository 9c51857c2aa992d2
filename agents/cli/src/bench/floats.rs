//! libtorch's floats, in the ways in which it multiplies them, and what races against them.

use anyhow::Result;
use tensorlink_graph::transformer::StageRunner;
use tensorlink_tensor::float::{FloatModel, Precision, Products};
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_types::TensorRoot;

use super::Measure;
use super::subject::Untrained;
use crate::device;

/// A decoder in floats. libtorch multiplies 32-bit floats by MKL, which is slow on AMD processors; oneDNN is what it
/// has beside it.
pub(super) struct Floats {
    mkl: FloatModel,
    one_dnn: FloatModel,
    bf16: FloatModel,
}

/// The decoder whose speed is measured, in integers and in floats.
pub(super) fn contestants(measure: &Measure<'_>) -> Result<(StageRunner<TorchEngine>, Floats)> {
    let size = measure.extent.size();
    let engine = device::open(Some(measure.device))?;
    let untrained = Untrained::llama(size, engine.device())?;
    let model = untrained.quantized()?;
    let floats = Floats::new(untrained, engine.device())?;
    let (plan, constants) = model.stage(0..size.layers, |_| TensorRoot::default())?;
    drop(model);
    Ok((StageRunner::new(engine, plan, &constants)?, floats))
}

impl Floats {
    fn new(untrained: Untrained, device: Device) -> Result<Self> {
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
