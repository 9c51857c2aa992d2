//! Products of matrices (MatMul, ScaledMatMul, ShiftedMatMul, HeadScores, HeadMix) by whichever kernel was chosen.
//!
//! | module | what lives there |
//! |---|---|
//! | `own` | by kernels of our own |
//! | `parts` | by libtorch on the host, a part at a time |

#[cfg(target_arch = "x86_64")]
mod own;
mod parts;

use tensorlink_program::EngineError;
use tensorlink_types::TensorType;

use crate::host::block::Precision;
#[cfg(not(target_arch = "x86_64"))]
use crate::kernels::Own;
use crate::kernels::{ElementKernel, Kernels};
use crate::simd::Simd;
use crate::tensor::{TorchTensor, device as failed};
use crate::torch;
use crate::torch::matmul::Kernel;

/// How an engine computes products.
#[derive(Clone, Copy)]
pub(crate) struct ProductDispatch {
    pub(crate) kernels: Kernels,
    pub(crate) simd: Simd,
    /// Threads of a large product on the host.
    pub(crate) threads: usize,
}

/// What belongs to the rows and columns of a product.
#[derive(Clone, Copy)]
pub(crate) enum Scales<'a> {
    /// Nothing: rule N-11.
    None,
    /// A scale for each row, and one for each column: rule N-25.
    Rows(&'a TorchTensor, &'a TorchTensor),
    /// A shift for each row, and a scale for each column: rule N-51.
    Shifts(&'a TorchTensor, &'a TorchTensor),
}

/// A product of whole matrices: rules N-11, N-25 and N-51.
pub(crate) struct Product<'a> {
    pub(crate) a: &'a TorchTensor,
    pub(crate) b: &'a TorchTensor,
    /// Where in the rows of `a` those of `b` begin.
    pub(crate) offset: usize,
    pub(crate) scales: Scales<'a>,
}

impl Product<'_> {
    /// Rows of the result, its columns, and elements of a dot product.
    fn shape(&self) -> Result<(usize, usize, usize), EngineError> {
        Ok((size(self.a.ty().rows())?, size(self.b.ty().rows())?, size(self.b.ty().row())?))
    }
}

/// Which product of attention.
#[derive(Clone, Copy)]
pub(crate) enum Heads {
    /// Rule N-26: queries by keys.
    Scores,
    /// Rule N-27: probabilities by values.
    Mix,
}

impl ProductDispatch {
    /// Rule N-11, N-25 or N-51 of checked operands.
    ///
    /// # Errors
    /// [`EngineError::Device`] when libtorch fails, or a kernel was chosen that this machine lacks.
    pub(crate) fn product(
        self,
        product: &Product<'_>,
        shift: i32,
        output: &TensorType,
    ) -> Result<TorchTensor, EngineError> {
        let Product { a, b, offset, scales } = *product;
        let to = Precision { shift, limit: output.limit() };
        let bytes = a.ty().bits() <= 8;
        if let Some(own) = self.kernels.own(bytes) {
            return self.by_own(own, product, to, output);
        }
        let kernel = Kernel::of(self.kernels, (bytes, b.ty().bits() <= 8));
        if self.kernels.elements != ElementKernel::Torch {
            return parts::product(self.simd, kernel, product, to, output);
        }
        let left = a.data()?.f_narrow(1, offset as i64, b.ty().row() as i64).map_err(failed)?;
        let right = if kernel.is_int_mm() { b.as_second()? } else { b.data()? };
        let sums = kernel.multiply(&left, right, b.ty().rows() as i64).map_err(failed)?;
        let out = match scales {
            Scales::None => torch::matmul::finish(&sums, to),
            Scales::Rows(r, c) => torch::matmul::finish_scaled(&sums, (r.data()?, c.data()?), to),
            Scales::Shifts(s, c) => torch::matmul::finish_shifted(&sums, (s.data()?, c.data()?), to),
        };
        torch::wrap(output, out)
    }

    /// Rule N-26 or N-27 of checked operands.
    ///
    /// # Errors
    /// [`EngineError::Device`] when libtorch fails, or a kernel was chosen that this machine lacks.
    pub(crate) fn heads(
        self,
        which: Heads,
        (a, b): (&TorchTensor, &TorchTensor),
        (heads, shift): (usize, i32),
        output: &TensorType,
    ) -> Result<TorchTensor, EngineError> {
        let to = Precision { shift, limit: output.limit() };
        let bytes = a.ty().bits() <= 8;
        if let Some(own) = self.kernels.own(bytes) {
            return self.heads_by_own(own, which, (a, b), (heads, to), output);
        }
        if self.kernels.elements != ElementKernel::Torch {
            return parts::heads(self.simd, which, (a, b), (heads, to), output);
        }
        let sums = match which {
            Heads::Scores => torch::attention::scores(a.data()?, b.data()?, heads as i64),
            Heads::Mix => torch::attention::mix(a.data()?, b.data()?, output.row() as i64 / heads as i64),
        };
        torch::wrap(output, sums.and_then(|sums| torch::matmul::finish(&sums, to)))
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl ProductDispatch {
    fn by_own(self, _: Own, _: &Product<'_>, _: Precision, _: &TensorType) -> Result<TorchTensor, EngineError> {
        Err(unavailable())
    }

    fn heads_by_own(
        self,
        _: Own,
        _: Heads,
        _: (&TorchTensor, &TorchTensor),
        _: (usize, Precision),
        _: &TensorType,
    ) -> Result<TorchTensor, EngineError> {
        Err(unavailable())
    }
}

/// A length as this machine counts elements in memory.
///
/// # Errors
/// [`EngineError::Malformed`] for more than it can.
pub(crate) fn size(n: u64) -> Result<usize, EngineError> {
    usize::try_from(n).map_err(malformed)
}

pub(crate) fn malformed(error: impl std::fmt::Display) -> EngineError {
    EngineError::Malformed(error.to_string())
}

fn unavailable() -> EngineError {
    EngineError::Device("this processor lacks what the kernel uses: choose another".to_owned())
}
