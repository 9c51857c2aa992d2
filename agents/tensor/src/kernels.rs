//! Which implementation of each operation an engine uses.
//!
//! All of them are exact; they differ in speed and in what they ask of the device.
//! [`TorchEngine::new`](crate::TorchEngine::new) tries the fastest first and keeps what reproduces known products,
//! extremes included.

use std::fmt;

use tensorlink_program::EngineError;
use tensorlink_types::Width;

use crate::device::Device;
use crate::self_test;
use crate::simd::Simd;

/// How int8 matrix products are computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Int8Kernel {
    /// Own AMX kernel with the rescale fused, VNNI for a few rows; host only.
    Amx,
    /// Own AVX-512 VNNI kernel with the rescale fused; host only.
    Vnni,
    /// libtorch's `_int_mm`. Saturates silently on x86 processors without VNNI.
    IntMm,
    /// `f32` products over at most 1024 elements of the dot product at a time.
    F32Chunks,
    /// `f64` products.
    F64,
}

/// How int16 matrix products are computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Int16Kernel {
    /// Own AMX kernel with the rescale fused, VNNI for a few rows; host only.
    Amx,
    /// Own AVX-512 VNNI kernel with the rescale fused; host only.
    Vnni,
    /// One `_int_mm` of high and low bytes, one below the other.
    Int8Halves,
    /// `f64` products.
    F64,
}

/// A kernel of our own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Own {
    Vnni,
    Amx,
}

/// How every other operator is computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ElementKernel {
    /// One pass over host memory in the widest vectors of the processor.
    Host,
    /// The same pass in the vectors that every processor of the architecture has.
    HostBaseline,
    /// libtorch's operations on `int64`.
    Torch,
}

/// The implementation chosen for each operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kernels {
    /// int8 matrix products.
    pub int8: Int8Kernel,
    /// int16 matrix products.
    pub int16: Int16Kernel,
    /// Everything else.
    pub elements: ElementKernel,
}

impl fmt::Display for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let simd = match self.elements {
            ElementKernel::Host => Simd::detect().name(),
            ElementKernel::HostBaseline => Simd::BASELINE.name(),
            ElementKernel::Torch => "libtorch",
        };
        write!(f, "int8 {:?}, int16 {:?}, elements {simd}", self.int8, self.int16)
    }
}

impl Kernels {
    /// The kernel of our own that multiplies bytes or words, if they are not libtorch's.
    pub(crate) const fn own(self, bytes: bool) -> Option<Own> {
        match (bytes, self.int8, self.int16) {
            (true, Int8Kernel::Amx, _) | (false, _, Int16Kernel::Amx) => Some(Own::Amx),
            (true, Int8Kernel::Vnni, _) | (false, _, Int16Kernel::Vnni) => Some(Own::Vnni),
            _ => None,
        }
    }

    /// The fastest that pass their self-test on this device, and why each faster one did not.
    ///
    /// # Errors
    /// [`EngineError::Device`] if the device fails, or computes even `f64` products wrongly.
    pub(crate) fn choose(device: Device) -> Result<(Self, Vec<EngineError>), EngineError> {
        let (int8, int16, elements): (&[_], &[_], _) = match device {
            Device::Cpu => (
                &[Int8Kernel::Amx, Int8Kernel::Vnni, Int8Kernel::IntMm, Int8Kernel::F32Chunks, Int8Kernel::F64],
                &[Int16Kernel::Amx, Int16Kernel::Vnni, Int16Kernel::Int8Halves, Int16Kernel::F64],
                ElementKernel::Host,
            ),
            Device::Cuda(_) => (
                &[Int8Kernel::IntMm, Int8Kernel::F64],
                &[Int16Kernel::Int8Halves, Int16Kernel::F64],
                ElementKernel::Torch,
            ),
        };
        let mut passed_over = Vec::new();
        let mut first = |candidates: &[Self], width| {
            for kernels in candidates {
                match self_test::products(device, *kernels, width) {
                    Ok(()) => return Ok(*kernels),
                    Err(error) => passed_over.push(error),
                }
            }
            Err(passed_over.pop().unwrap_or_else(|| EngineError::Device("no kernel to choose from".to_owned())))
        };
        let (int16_last, int8_last) = (Int16Kernel::F64, Int8Kernel::F64);
        let of_int8: Vec<Self> = int8.iter().map(|int8| Self { int8: *int8, int16: int16_last, elements }).collect();
        let of_int16: Vec<Self> = int16.iter().map(|int16| Self { int8: int8_last, int16: *int16, elements }).collect();
        let int8 = first(&of_int8, Width::I8)?.int8;
        let int16 = first(&of_int16, Width::I16)?.int16;
        Ok((Self { int8, int16, elements }, passed_over))
    }
}
