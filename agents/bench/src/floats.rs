//! libtorch's floats, in the ways in which it multiplies them, and what races against them.

use anyhow::Result;
use tensorlink_model::{Setting, StageRunner};
use tensorlink_tensor::float::{FloatModel, Precision, Products};
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_types::TensorRoot;

use super::Bench;
use super::subject::{Subject, Which};

/// A decoder in floats. libtorch multiplies 32-bit floats by MKL, which is slow on AMD processors; oneDNN is what it
/// has beside it.
pub(super) struct Floats {
    mkl: FloatModel,
    one_dnn: FloatModel,
    bf16: FloatModel,
}

/// A decoder whose speed is measured, in integers and in floats.
pub(super) struct Contestants {
    /// Which weights it has.
    pub(super) name: String,
    pub(super) vocabulary: u32,
    /// On which both compute.
    pub(super) device: Device,
    pub(super) runner: StageRunner<TorchEngine>,
    /// The same on the host, where the device is another.
    pub(super) host: Option<StageRunner<TorchEngine>>,
    pub(super) floats: Floats,
}

/// Opens a decoder.
pub(super) fn contestants(bench: &Bench<'_>, which: Which<'_>) -> Result<Contestants> {
    let engine = bench.engine()?;
    let subject = which.open(bench.extent, engine.device())?;
    let model = subject.quantized(Setting::default())?;
    let (name, vocabulary) = (subject.name.clone(), subject.architecture.vocabulary);
    let device = engine.device();
    let floats = Floats::new(subject, device)?;
    let (plan, constants) = model.stage(0..model.architecture().layers, |_| TensorRoot::default())?;
    drop(model);
    let host = match device {
        Device::Cpu => None,
        Device::Cuda(_) => Some(StageRunner::new(TorchEngine::new(Device::Cpu)?, plan.clone(), &constants)?),
    };
    let runner = StageRunner::new(engine, plan, &constants)?;
    Ok(Contestants { name, vocabulary, device, runner, host, floats })
}

impl Floats {
    fn new(subject: Subject, device: Device) -> Result<Self> {
        let Subject { architecture, weights, float, .. } = subject;
        let one_dnn = FloatModel::new(&architecture, &weights, device, Precision::F32)?;
        let bf16 = FloatModel::new(&architecture, &weights, device, Precision::Bf16)?;
        Ok(Self { mkl: float, one_dnn: one_dnn.with_products(Products::OneDnn), bf16 })
    }

    /// Each with its name.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, &FloatModel)> {
        [("f32 (MKL)", &self.mkl), ("f32 (oneDNN)", &self.one_dnn), ("bf16", &self.bf16)].into_iter()
    }
}
