//! Exact matrix products `a·bᵀ` out of libtorch's own.
//!
//! Each is exact because no partial sum leaves what its type holds: `int32` for sums of 4096 products of bytes, 24 bits
//! for `f32`, 53 bits for `f64`. Whether a machine keeps that promise is for the self-test to find out: `_int_mm`
//! saturates silently on x86 processors without VNNI.

use tch::{Kind, TchError, Tensor};

use super::lengths::{grown, taken};
use crate::host::block::Precision;
use crate::kernels::{Int8Kernel, Int16Kernel, Kernels};

/// How libtorch multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kernel {
    /// Bytes by `_int_mm`.
    Bytes,
    /// Bytes in `f32`.
    F32Chunks,
    /// Words by bytes by `_int_mm`.
    WordsByBytes,
    /// Words by `_int_mm`.
    Words,
    /// Either in `f64`.
    F64,
}

impl Kernel {
    /// What an engine's kernels come to for a first and a second matrix of bytes, or of words.
    pub(crate) const fn of(kernels: Kernels, bytes: (bool, bool)) -> Self {
        match (bytes, kernels.int8, kernels.int16) {
            ((true, _), Int8Kernel::IntMm, _) => Self::Bytes,
            ((true, _), Int8Kernel::F32Chunks, _) => Self::F32Chunks,
            ((false, true), _, Int16Kernel::Int8Halves) => Self::WordsByBytes,
            ((false, false), _, Int16Kernel::Int8Halves) => Self::Words,
            _ => Self::F64,
        }
    }

    /// Whether the second matrix may have zeros already below and to its right, where [`taken`] wants them.
    pub(crate) const fn is_int_mm(self) -> bool {
        matches!(self, Self::Bytes | Self::WordsByBytes)
    }

    /// Bits of a sum.
    pub(crate) const fn bits(self) -> u8 {
        match self {
            Self::Bytes | Self::F32Chunks => 32,
            Self::WordsByBytes | Self::Words | Self::F64 => 64,
        }
    }

    /// Bytes that it takes for each element of an operand, and for each of the result, at most.
    pub(crate) const fn takes(self) -> (usize, usize) {
        match self {
            Self::Bytes => (1, 4),
            Self::F32Chunks => (4, 12),
            Self::WordsByBytes => (2, 48),
            Self::Words => (2, 80),
            Self::F64 => (8, 16),
        }
    }

    /// Sums of products of a matrix by the first `n` rows of another.
    pub(crate) fn multiply(self, a: &Tensor, b: &Tensor, n: i64) -> Result<Tensor, TchError> {
        let (m, k) = a.size2()?;
        match self {
            Self::Bytes => int_mm(&a.f_contiguous()?, b, (m, n, k)),
            Self::F32Chunks => f32_chunks(a, b),
            Self::WordsByBytes => words_by_bytes(a, b, (m, n, k)),
            Self::Words => words_by_words(a, b),
            Self::F64 => f64_product(a, b),
        }
    }
}

/// Elements of a dot product whose sum of int8 products stays below 2^24.
const F32_CHUNK: i64 = 1024;

/// int8 product by `_int_mm`, in int32. Either matrix may have zeros already below and to its right, where [`taken`]
/// wants them: `size` is what it has without.
fn int_mm(a: &Tensor, b: &Tensor, size: (i64, i64, i64)) -> Result<Tensor, TchError> {
    let (pm, pn, pk) = taken(size, a.device());
    let (a, b) = (grown(a, pm, pk)?, grown(b, pn, pk)?);
    a.f_internal_int_mm(&b.f_transpose(0, 1)?)?.f_narrow(0, 0, size.0)?.f_narrow(1, 0, size.1)
}

/// int8 product in `f32`, in chunks of the dot product that stay below 2^24; in int32.
fn f32_chunks(a: &Tensor, b: &Tensor) -> Result<Tensor, TchError> {
    let k = a.size2()?.1;
    let (a, b) = (a.f_to_kind(Kind::Float)?, b.f_to_kind(Kind::Float)?);
    let mut sum: Option<Tensor> = None;
    for start in (0..k).step_by(F32_CHUNK as usize) {
        let length = F32_CHUNK.min(k - start);
        let part = a.f_narrow(1, start, length)?.f_mm(&b.f_narrow(1, start, length)?.f_transpose(0, 1)?)?;
        let part = part.f_to_kind(Kind::Int)?;
        sum = Some(match sum {
            Some(sum) => sum.f_add(&part)?,
            None => part,
        });
    }
    sum.ok_or_else(|| TchError::Torch("a dot product of nothing".to_owned()))
}

/// int8 or int16 product in `f64`: 4096 products of 2^30 stay below 2^53. In int64.
fn f64_product(a: &Tensor, b: &Tensor) -> Result<Tensor, TchError> {
    a.f_to_kind(Kind::Double)?.f_mm(&b.f_to_kind(Kind::Double)?.f_transpose(0, 1)?)?.f_to_kind(Kind::Int64)
}

/// The bytes of `m × k` words, high ones above low ones, and below them a row of ones, by which `_int_mm` gives
/// the sums of the other matrix: `word = 256·high + low + 128`, `low` being signed too. Zeros fill it up to `rows`
/// by `row`.
fn bytes_of(words: &Tensor, (rows, row): (i64, i64)) -> Result<Tensor, TchError> {
    let (m, k) = words.size2()?;
    let out = Tensor::f_zeros([rows, row], (Kind::Int8, words.device()))?;
    let part = |first: i64, rows: i64| out.f_narrow(0, first, rows)?.f_narrow(1, 0, k);
    // Processors that libtorch runs on keep the low byte first.
    let bytes = words.f_contiguous()?.f_view_dtype(Kind::Int8)?.f_view([m, k, 2])?;
    part(0, m)?.f_copy_(&bytes.f_select(2, 1)?)?;
    part(m, m)?.f_copy_(&bytes.f_select(2, 0)?.f_bitwise_xor(-128)?)?;
    let _ = part(2 * m, 1)?.f_fill_(1)?;
    Ok(out)
}

/// `256·high + low` of what stands in the first `m` rows and the `m` below, in int64.
fn joined(halves: &Tensor, m: i64) -> Result<Tensor, TchError> {
    let wide = halves.f_narrow(0, 0, 2 * m)?.f_to_kind(Kind::Int64)?;
    wide.f_narrow(0, 0, m)?.f_bitwise_left_shift_tensor_scalar(8)?.f_add(&wide.f_narrow(0, m, m)?)
}

/// int16 × int8 product out of one of bytes, in int64; `b` as in [`int_mm`].
fn words_by_bytes(a: &Tensor, b: &Tensor, (m, n, k): (i64, i64, i64)) -> Result<Tensor, TchError> {
    let size = (2 * m + 1, n, k);
    let (rows, _, row) = taken(size, a.device());
    let halves = int_mm(&bytes_of(a, (rows, row))?, b, size)?;
    let bias = halves.f_narrow(0, 2 * m, 1)?.f_to_kind(Kind::Int64)?.f_mul_scalar(128)?;
    joined(&halves, m)?.f_add_(&bias)
}

/// int16 × int16 product out of one of bytes, in int64.
fn words_by_words(a: &Tensor, b: &Tensor) -> Result<Tensor, TchError> {
    let ((m, k), (n, _)) = (a.size2()?, b.size2()?);
    let size = (2 * m + 1, 2 * n + 1, k);
    let (rows, columns, row) = taken(size, a.device());
    // Columns: high bytes, low ones, sums.
    let halves = int_mm(&bytes_of(a, (rows, row))?, &bytes_of(b, (columns, row))?, size)?;
    let of_a = joined(&halves, m)?;
    let product = joined(&of_a.f_narrow(1, 0, 2 * n)?.f_transpose(0, 1)?, n)?.f_transpose(0, 1)?;
    let sums_a = of_a.f_narrow(1, 2 * n, 1)?;
    let sums_b =
        joined(&halves.f_narrow(0, 2 * m, 1)?.f_narrow(1, 0, 2 * n)?.f_transpose(0, 1)?, n)?.f_transpose(0, 1)?;
    let bias = sums_a.f_add(&sums_b)?.f_mul_scalar(128)?.f_add_scalar(128 * 128 * k)?;
    product.f_add(&bias)
}

/// The rescale of sums in any width; in int64.
pub(crate) fn finish(sums: &Tensor, to: Precision) -> Result<Tensor, TchError> {
    super::rescale(&sums.f_to_kind(Kind::Int64)?, to.shift, to.limit)
}

/// Sums by scales of rows and columns, rescaled.
pub(crate) fn finish_scaled(sums: &Tensor, (r, c): (&Tensor, &Tensor), to: Precision) -> Result<Tensor, TchError> {
    // Scales are widened on the way; rule N-25 bounds the product of the limits.
    finish(&sums.f_to_kind(Kind::Int64)?.f_mul(&r.f_reshape([-1, 1])?)?.f_mul(&c.f_reshape([1, -1])?)?, to)
}

/// Sums by scales of columns, each row rescaled by a shift less its own.
pub(crate) fn finish_shifted(sums: &Tensor, (s, c): (&Tensor, &Tensor), to: Precision) -> Result<Tensor, TchError> {
    let sums = sums.f_to_kind(Kind::Int64)?.f_mul(&c.f_reshape([1, -1])?)?;
    let places = super::row_shifts(s)?.f_neg()?.f_add_scalar(i64::from(to.shift))?.f_expand_as(&sums)?;
    super::rescale_each(&sums, &places, to.limit)
}
