//! MatMul by whichever kernel was chosen.

use tensorlink_graph::EngineError;
use tensorlink_types::TensorType;

use crate::host::elementwise::{Precision, scale};
use crate::kernels::{ElementKernel, Int8Kernel, Int16Kernel, Kernels};
use crate::simd::Simd;
#[cfg(target_arch = "x86_64")]
use crate::tensor::Slice;
use crate::tensor::{TorchTensor, device as failed, dims, kind};
use crate::torch;
use crate::torch::matmul::{f32_chunks, f64_product, int_mm, int8_halves};

/// Bits and type of what an accumulator of a libtorch kernel is held in.
const ACCUMULATOR_32: u8 = 32;
const ACCUMULATOR_64: u8 = 64;

/// Rule N-11 of checked operands.
///
/// # Errors
/// [`EngineError::Device`] when libtorch fails, or a kernel was chosen that this machine lacks.
pub(crate) fn execute(
    kernels: Kernels,
    (simd, threads): (Simd, usize),
    (a, b): (&TorchTensor, &TorchTensor),
    shift: i32,
    output: &TensorType,
) -> Result<TorchTensor, EngineError> {
    let to = Precision { shift, limit: output.limit() };
    let (left, right) = (a.data(), b.data());
    let int8 = a.ty().bits() <= 8;
    let (product, bits) = match (int8, kernels.int8, kernels.int16) {
        (true, Int8Kernel::Vnni, _) | (false, _, Int16Kernel::Vnni) => return vnni((a, b), to, output, threads),
        (true, Int8Kernel::IntMm, _) => (int_mm(left, right), ACCUMULATOR_32),
        (true, Int8Kernel::F32Chunks, _) => (f32_chunks(left, right), ACCUMULATOR_32),
        (false, _, Int16Kernel::Int8Halves) => (int8_halves(left, right), ACCUMULATOR_64),
        (true, Int8Kernel::F64, _) | (false, _, Int16Kernel::F64) => (f64_product(left, right), ACCUMULATOR_64),
    };
    let product = product.map_err(failed)?;
    if kernels.elements == ElementKernel::Torch {
        let wide = product.f_to_kind(tch::Kind::Int64).map_err(failed)?;
        let narrow = torch::rescale(&wide, shift, to.limit).and_then(|t| t.f_to_kind(kind(output.width())));
        return TorchTensor::wrap(output.clone(), narrow.and_then(|t| t.f_contiguous()).map_err(failed)?);
    }
    let ty = output.with_precision(bits, 0).map_err(|error| EngineError::Malformed(error.to_string()))?;
    let product = TorchTensor::wrap(ty, product.f_reshape(dims(output).as_slice()).map_err(failed)?)?;
    let product = product.slice()?;
    TorchTensor::build(output, |mut out| {
        // int8 products stay below 2^26, so `i32` leaves room for rounding.
        if bits == ACCUMULATOR_32 && i32::try_from(to.limit).is_ok() {
            scale::<i32>(simd, product, 1, to, &mut out);
        } else {
            scale::<i64>(simd, product, 1, to, &mut out);
        }
        Ok(())
    })
}

#[cfg(target_arch = "x86_64")]
fn vnni(
    (a, b): (&TorchTensor, &TorchTensor),
    to: Precision,
    output: &TensorType,
    threads: usize,
) -> Result<TorchTensor, EngineError> {
    let vnni = crate::host::vnni::Vnni::detect(threads).ok_or_else(unavailable)?;
    let k = usize::try_from(a.ty().row()).map_err(|_| unavailable())?;
    let limits = (a.ty().limit(), b.ty().limit());
    let operands = (a.slice()?, b.slice()?);
    TorchTensor::build(output, |out| {
        match operands {
            (Slice::I8(a), Slice::I8(b)) => vnni.int8(a, b, k, to, out),
            (Slice::I16(a), Slice::I16(b)) => vnni.int16((a, limits.0), (b, limits.1), k, to, out),
            _ => return Err(EngineError::Malformed("MatMul wants int8 or int16 operands of one width".to_owned())),
        }
        Ok(())
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn vnni(_: (&TorchTensor, &TorchTensor), _: Precision, _: &TensorType, _: usize) -> Result<TorchTensor, EngineError> {
    Err(unavailable())
}

fn unavailable() -> EngineError {
    EngineError::Device("this processor has no AVX-512 VNNI: choose another kernel".to_owned())
}
