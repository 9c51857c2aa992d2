//! What a device is called by who made it.

use std::env::consts::ARCH;

use sysinfo::{CpuRefreshKind, System};
use tensorlink_program::EngineError;

use crate::cuda;
use crate::device::Device;

/// The model of the host's processor, or of the GPU.
pub(crate) fn name(device: Device) -> Result<String, EngineError> {
    match device {
        Device::Cpu => Ok(processor().unwrap_or_else(|| ARCH.to_owned())),
        Device::Cuda(index) => cuda::name(index),
    }
}

/// The model, where the system tells it.
fn processor() -> Option<String> {
    let mut system = System::new().ok()?;
    system.refresh_cpu_list(CpuRefreshKind::nothing());
    system.cpus().first().map(|cpu| cpu.brand().trim().to_owned()).filter(|brand| !brand.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_a_processor() {
        let name = name(Device::Cpu).unwrap();
        assert!(!name.is_empty() && name == name.trim(), "{name:?}");
    }

    #[test]
    fn an_absent_gpu_is_a_device_error() {
        assert!(matches!(name(Device::Cuda(4096)), Err(EngineError::Device(_))));
    }
}
