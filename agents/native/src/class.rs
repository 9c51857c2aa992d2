//! What computes floats alike.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Precision of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits throughout.
    F32,
    /// Operands of products in bfloat16, everything else in 32 bits.
    Bf16,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        })
    }
}

/// Instruction sets that libtorch has kernels for, by its own names (`ATEN_CPU_CAPABILITY`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Capability {
    /// Those of every processor.
    Default,
    /// AVX2.
    Avx2,
    /// AVX-512.
    Avx512,
}

/// How sums are cut on a processor: threads add up parts of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Threads {
    /// One thread.
    One,
    /// Two or more.
    Many,
}

/// What a worker computes floats by, as it says itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceClass {
    /// A processor.
    Cpu {
        /// Its instruction set.
        capability: Capability,
        /// How many threads compute.
        threads: Threads,
    },
    /// A GPU of NVIDIA's, by its compute capability.
    Cuda {
        /// Before the point.
        major: u8,
        /// After it.
        minor: u8,
    },
}

impl fmt::Display for DeviceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu { capability, threads } => {
                let capability = match capability {
                    Capability::Default => "default",
                    Capability::Avx2 => "avx2",
                    Capability::Avx512 => "avx512",
                };
                let threads = match threads {
                    Threads::One => "1 thread",
                    Threads::Many => "threads",
                };
                write!(f, "cpu {capability}, {threads}")
            }
            Self::Cuda { major, minor } => write!(f, "cuda {major}.{minor}"),
        }
    }
}
