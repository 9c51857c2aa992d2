//! How much a device can still hold.

use tensorlink_program::EngineError;

use crate::cuda;
use crate::device::Device;

/// Bytes free on a device; on the host, what programs can take without swapping, within the process's control group.
pub(crate) fn free(device: Device) -> Result<u64, EngineError> {
    match device {
        Device::Cpu => host().ok_or_else(|| EngineError::Device("the system does not tell its free memory".to_owned())),
        Device::Cuda(index) => cuda::free_memory(index),
    }
}

fn host() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    let machine = system.available_memory();
    let group = system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory);
    Some(machine.min(group)).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_room_for_this_test() {
        assert!(free(Device::Cpu).unwrap() > 1 << 20);
    }

    #[test]
    fn an_absent_gpu_is_a_device_error() {
        assert!(matches!(free(Device::Cuda(4096)), Err(EngineError::Device(_))));
    }
}
