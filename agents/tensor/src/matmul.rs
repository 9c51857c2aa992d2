//! Products of matrices (MatMul, ScaledMatMul, ShiftedMatMul, HeadScores, HeadMix) by whichever kernel was chosen.

use tensorlink_program::EngineError;
use tensorlink_types::TensorType;

use crate::host::block::Precision;
use crate::host::elementwise::scale;
use crate::host::linear::scale_rows;
use crate::host::shifts::of_row;
use crate::kernels::{ElementKernel, Int8Kernel, Int16Kernel, Kernels, Own};
use crate::simd::Simd;
use crate::tensor::{TorchTensor, device as failed};
use crate::torch;
use crate::torch::matmul::{f32_chunks, f64_product, int_mm, words_by_bytes, words_by_words};

/// Bits of what an accumulator of a libtorch kernel is held in.
const ACCUMULATOR_32: u8 = 32;
const ACCUMULATOR_64: u8 = 64;

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
        let Kernels { int8: of_bytes, int16: of_words, .. } = self.kernels;
        let to = Precision { shift, limit: output.limit() };
        let bytes = a.ty().bits() <= 8;
        if let Some(own) = self.kernels.own(bytes) {
            return self.by_own(own, product, to, output);
        }
        let k = b.ty().row() as i64;
        let left = a.data()?.f_narrow(1, offset as i64, k).and_then(|a| a.f_contiguous()).map_err(failed)?;
        let (right, size) = (b.data()?, (a.ty().rows() as i64, b.ty().rows() as i64, k));
        let (sums, bits) = match (bytes, of_bytes, of_words) {
            (true, Int8Kernel::IntMm, _) => (int_mm(&left, b.as_second()?, size), ACCUMULATOR_32),
            (true, Int8Kernel::F32Chunks, _) => (f32_chunks(&left, right), ACCUMULATOR_32),
            (false, _, Int16Kernel::Int8Halves) if b.ty().bits() <= 8 => {
                (words_by_bytes(&left, b.as_second()?, size), ACCUMULATOR_64)
            }
            (false, _, Int16Kernel::Int8Halves) => (words_by_words(&left, right), ACCUMULATOR_64),
            _ => (f64_product(&left, right), ACCUMULATOR_64),
        };
        let sums = sums.map_err(failed)?;
        if self.kernels.elements == ElementKernel::Torch {
            let out = match scales {
                Scales::None => torch::matmul::finish(&sums, to),
                Scales::Rows(r, c) => torch::matmul::finish_scaled(&sums, (r.data()?, c.data()?), to),
                Scales::Shifts(s, c) => torch::matmul::finish_shifted(&sums, (s.data()?, c.data()?), to),
            };
            return torch::wrap(output, out);
        }
        // The product has the output's shape in the accumulator's width.
        let sums = TorchTensor::wrap(
            output.with_precision(bits, 0).map_err(malformed)?,
            sums.f_contiguous().map_err(failed)?,
        )?;
        self.finish(&sums, scales, to, output)
    }

    /// Scales and rescales sums on the host.
    fn finish(
        self,
        sums: &TorchTensor,
        scales: Scales<'_>,
        to: Precision,
        output: &TensorType,
    ) -> Result<TorchTensor, EngineError> {
        let simd = self.simd;
        let of_rows = match scales {
            Scales::None => None,
            Scales::Rows(r, c) => Some((r.slice()?.to_wide().into_iter().map(|r| (r, to)).collect(), c)),
            Scales::Shifts(s, c) => {
                let s = s.slice()?;
                let of = |m| (1, Precision { shift: to.shift - of_row(s, m), limit: to.limit });
                Some(((0..s.len()).map(of).collect::<Vec<_>>(), c))
            }
        };
        if let Some((rows, c)) = of_rows {
            let (sums, c) = (sums.slice()?, c.slice()?.to_wide());
            return TorchTensor::build(output, |mut out| {
                scale_rows(simd, sums, (&rows, &c), &mut out);
                Ok(())
            });
        }
        let narrow = sums.ty().bits() == ACCUMULATOR_32 && i32::try_from(to.limit).is_ok();
        let sums = sums.slice()?;
        TorchTensor::build(output, |mut out| {
            // int8 products stay below 2^26, so `i32` leaves room for rounding.
            if narrow {
                scale::<i32>(simd, sums, 1, to, &mut out);
            } else {
                scale::<i64>(simd, sums, 1, to, &mut out);
            }
            Ok(())
        })
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
        let sums = match which {
            Heads::Scores => torch::attention::scores(a.data()?, b.data()?, heads as i64),
            Heads::Mix => torch::attention::mix(a.data()?, b.data()?, output.row() as i64 / heads as i64),
        };
        let sums = sums.map_err(failed)?;
        if self.kernels.elements == ElementKernel::Torch {
            return torch::wrap(output, torch::matmul::finish(&sums, to));
        }
        let sums = TorchTensor::wrap(output.with_precision(ACCUMULATOR_64, 0).map_err(malformed)?, sums)?;
        self.finish(&sums, Scales::None, to, output)
    }
}

#[cfg(target_arch = "x86_64")]
mod own {
    //! Products by our own kernels.

    use super::{
        EngineError, Heads, Own, Precision, Product, ProductDispatch, Scales, TensorType, TorchTensor, malformed,
        unavailable,
    };
    use crate::host::amx::Amx;
    use crate::host::vnni::Operand;
    use crate::host::vnni::Vnni;
    use crate::host::vnni::finish::{Finish, Rescaled, Scaled, Shifted};
    use crate::host::vnni::matrix::{Batch, View};
    use crate::slice::SliceMut;

    impl ProductDispatch {
        pub(super) fn by_own(
            self,
            own: Own,
            product: &Product<'_>,
            to: Precision,
            output: &TensorType,
        ) -> Result<TorchTensor, EngineError> {
            let Product { a, b, offset, scales } = *product;
            let size = |n: u64| usize::try_from(n).map_err(malformed);
            let (m, n, k) = (size(a.ty().rows())?, size(b.ty().rows())?, size(b.ty().row())?);
            let batch = Batch::single((m, n, k), (offset, size(a.ty().row())?));
            match scales {
                Scales::None => self.multiply(own, (a, b), &batch, &Rescaled(to), output),
                Scales::Rows(r, c) => {
                    self.multiply(own, (a, b), &batch, &Scaled::new(r.slice()?, c.slice()?, to), output)
                }
                Scales::Shifts(s, c) => {
                    self.multiply(own, (a, b), &batch, &Shifted::new(s.slice()?, c.slice()?, to), output)
                }
            }
        }

        pub(super) fn heads_by_own(
            self,
            own: Own,
            which: Heads,
            (a, b): (&TorchTensor, &TorchTensor),
            (heads, to): (usize, Precision),
            output: &TensorType,
        ) -> Result<TorchTensor, EngineError> {
            let size = |n: u64| usize::try_from(n).map_err(malformed);
            let (rows, row, stride) = (size(b.ty().rows())?, size(b.ty().row())?, b.strided()?.1);
            let batch = match which {
                Heads::Scores => {
                    let (t, width) = (size(a.ty().rows())?, size(a.ty().row())?);
                    let depth = width / heads;
                    Batch {
                        count: heads,
                        a: (View { first: 0, rows: t, width: depth, stride: width }, depth),
                        b: (View { first: 0, rows, width: depth, stride }, depth),
                        share: heads / (row / depth),
                        out: (t * rows, rows),
                    }
                }
                Heads::Mix => {
                    let width = size(output.row())?;
                    let (t, depth) = (size(output.rows())?, width / heads);
                    Batch {
                        count: heads,
                        a: (View::whole(t, row), t * row),
                        b: (View { first: 0, rows: depth, width: row, stride }, depth * stride),
                        share: heads / (rows / depth),
                        out: (depth, width),
                    }
                }
            };
            self.multiply(own, (a, b), &batch, &Rescaled(to), output)
        }

        fn multiply(
            self,
            own: Own,
            (a, b): (&TorchTensor, &TorchTensor),
            batch: &Batch,
            finish: &impl Finish,
            output: &TensorType,
        ) -> Result<TorchTensor, EngineError> {
            let operands = ((a.slice()?, a.ty().limit()), (b.strided()?.0, b.ty().limit()));
            TorchTensor::build(output, |out| self.multiply_into(own, operands, batch, finish, out))
        }

        /// Products of operands in memory.
        pub(crate) fn multiply_into(
            self,
            own: Own,
            operands: (Operand<'_>, Operand<'_>),
            batch: &Batch,
            finish: &impl Finish,
            out: SliceMut<'_>,
        ) -> Result<(), EngineError> {
            let done = match own {
                Own::Vnni => Vnni::detect(self.threads).map(|vnni| vnni.multiply(operands, batch, finish, out)),
                Own::Amx => Amx::detect(self.threads).map(|amx| amx.multiply(operands, batch, finish, out)),
            };
            if done.ok_or_else(unavailable)? {
                Ok(())
            } else {
                Err(EngineError::Malformed(
                    "products want int8 or int16 operands, the second no wider than the first".to_owned(),
                ))
            }
        }
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

pub(crate) fn malformed(error: impl std::fmt::Display) -> EngineError {
    EngineError::Malformed(error.to_string())
}

fn unavailable() -> EngineError {
    EngineError::Device("this processor lacks what the kernel uses: choose another".to_owned())
}
