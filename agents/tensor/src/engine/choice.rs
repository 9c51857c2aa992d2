//! Which kernels an engine takes, unless it is told.

use tensorlink_program::EngineError;
use tensorlink_types::Width;

use super::self_test;
use crate::device::Device;
use crate::kernels::{ElementKernel, Int8Kernel, Int16Kernel, Kernels};

/// The fastest kernels that pass their self-test on this device, and why each faster one did not.
///
/// # Errors
/// [`EngineError::Device`] if the device fails, or computes even `f64` products wrongly.
pub(super) fn choose(device: Device) -> Result<(Kernels, Vec<EngineError>), EngineError> {
    let (int8, int16, elements): (&[_], &[_], _) = match device {
        Device::Cpu => (
            &[Int8Kernel::Amx, Int8Kernel::Vnni, Int8Kernel::Avx2, Int8Kernel::F32Chunks, Int8Kernel::F64],
            &[Int16Kernel::Amx, Int16Kernel::Vnni, Int16Kernel::Avx2, Int16Kernel::F64],
            ElementKernel::Host,
        ),
        Device::Cuda(_) => {
            (&[Int8Kernel::IntMm, Int8Kernel::F64], &[Int16Kernel::Int8Halves, Int16Kernel::F64], ElementKernel::Torch)
        }
    };
    let mut passed_over = Vec::new();
    let mut first = |candidates: &[Kernels], width| {
        for kernels in candidates {
            match self_test::products(device, *kernels, width) {
                Ok(()) => return Ok(*kernels),
                Err(error) => passed_over.push(error),
            }
        }
        Err(passed_over.pop().unwrap_or_else(|| EngineError::Device("no kernel to choose from".to_owned())))
    };
    let (int16_last, int8_last) = (Int16Kernel::F64, Int8Kernel::F64);
    let of_int8: Vec<Kernels> = int8.iter().map(|int8| Kernels { int8: *int8, int16: int16_last, elements }).collect();
    let of_int16: Vec<Kernels> =
        int16.iter().map(|int16| Kernels { int8: int8_last, int16: *int16, elements }).collect();
    let int8 = first(&of_int8, Width::I8)?.int8;
    let int16 = first(&of_int16, Width::I16)?.int16;
    Ok((Kernels { int8, int16, elements }, passed_over))
}
