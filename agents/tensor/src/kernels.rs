//! Which implementation of each operation an engine uses.
//!
//! All of them are exact; they differ in speed and in what they ask of the device.
//! [`TorchEngine::new`](crate::TorchEngine::new) tries the fastest first and keeps what reproduces known products,
//! extremes included.

use std::fmt;

use crate::simd::Simd;

/// How int8 matrix products are computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Int8Kernel {
    /// Own AMX kernel with the rescale fused, VNNI for a few rows; host only.
    Amx,
    /// Own AVX-512 VNNI kernel with the rescale fused; host only.
    Vnni,
    /// Own AVX2 kernel with the rescale fused; host only.
    Avx2,
    /// libtorch's `_int_mm`. On x86 processors without VNNI it saturates silently or is slow.
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
    /// Own AVX2 kernel with the rescale fused; host only.
    Avx2,
    /// One `_int_mm` of high and low bytes, one below the other.
    Int8Halves,
    /// `f64` products.
    F64,
}

/// A kernel of our own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Own {
    Avx2,
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
            (true, Int8Kernel::Avx2, _) | (false, _, Int16Kernel::Avx2) => Some(Own::Avx2),
            _ => None,
        }
    }
}
