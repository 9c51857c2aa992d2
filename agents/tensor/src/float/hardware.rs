//! What libtorch computes floats by: another one rounds otherwise.

use tensorlink_program::EngineError;

use crate::cuda;

/// Instruction sets that libtorch has kernels for on x86, by its own names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Capability {
    /// Those of every processor.
    Default,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512 with its F, BW, DQ and VL, and FMA.
    Avx512,
}

impl Capability {
    /// Overrules libtorch's choice.
    pub const VARIABLE: &'static str = "ATEN_CPU_CAPABILITY";

    /// As libtorch names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// What this processor has.
    pub fn of_processor() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let fma = is_x86_feature_detected!("fma");
            let wide = is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq");
            if wide && fma {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && fma {
                return Self::Avx2;
            }
        }
        Self::Default
    }

    /// What libtorch chooses in this process (`compute_cpu_capability` of its `DispatchStub.cpp`): what
    /// [`Self::VARIABLE`] says, else what the processor has.
    pub fn chosen() -> Self {
        let said = std::env::var(Self::VARIABLE).ok();
        let known = [Self::Default, Self::Avx2, Self::Avx512].into_iter();
        let named = said.and_then(|said| known.into_iter().find(|capability| capability.name() == said));
        named.unwrap_or_else(Self::of_processor)
    }
}

/// Threads that libtorch computes with on the host.
pub fn threads() -> u32 {
    u32::try_from(tch::get_num_threads()).unwrap_or(1).max(1)
}

/// Compute capability of a CUDA device, before and after the point.
///
/// # Errors
/// [`EngineError::Device`] if the device or the CUDA runtime is not there.
pub fn compute_capability(index: usize) -> Result<(u8, u8), EngineError> {
    cuda::compute_capability(index)
}
