//! libtorch for native mode: the floats behind its trait.

use std::ops::Range;

use anyhow::Result;
use tensorlink_native as native;
use tensorlink_native::{DeviceClass, Floats, FloatsError, State, Task, Threads};
use tensorlink_program::EngineError;
use tensorlink_tensor::Device;
use tensorlink_tensor::float::{FloatError, FloatRun, Precision, hardware};

use crate::device;

/// A device of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Libtorch {
    device: Device,
    class: DeviceClass,
}

impl Libtorch {
    /// The device asked for, else CUDA if there is one, else the processor.
    ///
    /// # Errors
    /// When there is no such device, or nothing was asked for and CUDA does not work.
    pub fn open(wanted: Option<&str>) -> Result<Self> {
        let device = device::choose(wanted)?;
        Ok(Self { device, class: class(device)? })
    }
}

/// What a device is, if it is there.
fn class(device: Device) -> Result<DeviceClass, EngineError> {
    Ok(match device {
        Device::Cpu => {
            let capability = match hardware::Capability::chosen() {
                hardware::Capability::Default => native::Capability::Default,
                hardware::Capability::Avx2 => native::Capability::Avx2,
                hardware::Capability::Avx512 => native::Capability::Avx512,
            };
            let threads = if hardware::threads() == 1 { Threads::One } else { Threads::Many };
            DeviceClass::Cpu { capability, threads }
        }
        Device::Cuda(index) => {
            let (major, minor) = hardware::compute_capability(index)?;
            DeviceClass::Cuda { major, minor }
        }
    })
}

const fn precision(precision: native::Precision) -> Precision {
    match precision {
        native::Precision::F32 => Precision::F32,
        native::Precision::Bf16 => Precision::Bf16,
    }
}

impl Floats for Libtorch {
    fn class(&self) -> DeviceClass {
        self.class
    }

    fn run(
        &self,
        task: &Task,
        state: &State,
        steps: Range<u32>,
        of: native::Precision,
    ) -> Result<(State, Vec<f64>), FloatsError> {
        let failed = |error: FloatError| FloatsError(error.to_string());
        let mut run = FloatRun::new(&task.graph, &task.data, state, (self.device, precision(of))).map_err(failed)?;
        let losses = steps.map(|step| run.train(&task.context(step))).collect::<Result<_, _>>().map_err(failed)?;
        Ok((run.state().map_err(failed)?, losses))
    }
}
