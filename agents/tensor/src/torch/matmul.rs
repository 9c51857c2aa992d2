//! Exact matrix products `a·bᵀ` out of libtorch's own.
//!
//! Each is exact because no partial sum leaves what its type holds: `int32` for sums of 4096 products of bytes, 24 bits
//! for `f32`, 53 bits for `f64`. Whether a machine keeps that promise is for the self-test to find out: `_int_mm`
//! saturates silently on x86 processors without VNNI.

use tch::{Device, Kind, TchError, Tensor};

use crate::host::elementwise::Precision;

/// Elements of a dot product whose sum of int8 products stays below 2^24.
const F32_CHUNK: i64 = 1024;

/// Smallest multiple of `unit` that holds `n`.
const fn padded(n: i64, unit: i64) -> i64 {
    (n + unit - 1) / unit * unit
}

/// int8 product by `_int_mm`, in int32. CUDA wants more than 16 rows, and the other lengths in multiples of 8; on the
/// host, libtorch 2.11 answers noise for dot products of one element.
pub(crate) fn int_mm(a: &Tensor, b: &Tensor) -> Result<Tensor, TchError> {
    let (m, k) = a.size2()?;
    let n = b.size2()?.0;
    let (pm, pk, pn) = match a.device() {
        Device::Cpu => (m, k.max(2), n),
        _ => (padded(m.max(17), 8), padded(k, 8), padded(n, 8)),
    };
    let a = if (pm, pk) == (m, k) { a.shallow_clone() } else { a.f_constant_pad_nd([0, pk - k, 0, pm - m])? };
    let b = if (pn, pk) == (n, k) { b.shallow_clone() } else { b.f_constant_pad_nd([0, pk - k, 0, pn - n])? };
    a.f_internal_int_mm(&b.f_transpose(0, 1)?)?.f_narrow(0, 0, m)?.f_narrow(1, 0, n)
}

/// int8 product in `f32`, in chunks of the dot product that stay below 2^24; in int32.
pub(crate) fn f32_chunks(a: &Tensor, b: &Tensor) -> Result<Tensor, TchError> {
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
pub(crate) fn f64_product(a: &Tensor, b: &Tensor) -> Result<Tensor, TchError> {
    a.f_to_kind(Kind::Double)?.f_mm(&b.f_to_kind(Kind::Double)?.f_transpose(0, 1)?)?.f_to_kind(Kind::Int64)
}

/// Bytes `(high, low)` of int16 mantissas, both signed: `m = 256·high + low + 128`.
fn halves(m: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    let high = m.f_bitwise_right_shift_tensor_scalar(8)?.f_to_kind(Kind::Int8)?;
    let low = m.f_bitwise_and(0xff)?.f_sub_scalar(128)?.f_to_kind(Kind::Int8)?;
    Ok((high, low))
}

/// int16 product out of four int8 products, in int64: with `a = A + 128` and `b = B + 128`,
/// `Σab = ΣAB + 128·(Σa + Σb) − 128²·K`.
pub(crate) fn int8_halves(a: &Tensor, b: &Tensor) -> Result<Tensor, TchError> {
    let k = a.size2()?.1;
    let ((ah, al), (bh, bl)) = (halves(a)?, halves(b)?);
    let high = int_mm(&ah, &bh)?.f_to_kind(Kind::Int64)?.f_bitwise_left_shift_tensor_scalar(16)?;
    let middle = int_mm(&ah, &bl)?.f_add(&int_mm(&al, &bh)?)?;
    let middle = middle.f_to_kind(Kind::Int64)?.f_bitwise_left_shift_tensor_scalar(8)?;
    let low = int_mm(&al, &bl)?.f_to_kind(Kind::Int64)?;
    let sums = |m: &Tensor| m.f_sum_dim_intlist(&[1i64][..], true, Kind::Int64)?.f_mul_scalar(128);
    let bias = sums(a)?.f_add(&sums(b)?.f_transpose(0, 1)?)?.f_sub_scalar(128 * 128 * k)?;
    high.f_add(&middle)?.f_add(&low)?.f_add(&bias)
}

/// The rescale of sums in any width; in int64.
pub(crate) fn finish(sums: &Tensor, to: Precision) -> Result<Tensor, TchError> {
    super::rescale(&sums.f_to_kind(Kind::Int64)?, to.shift, to.limit)
}

/// Sums by scales of rows and columns, rescaled.
pub(crate) fn finish_scaled(sums: &Tensor, (r, c): (&Tensor, &Tensor), to: Precision) -> Result<Tensor, TchError> {
    let (r, c) = (r.f_to_kind(Kind::Int64)?, c.f_to_kind(Kind::Int64)?);
    finish(&sums.f_to_kind(Kind::Int64)?.f_mul(&r.f_reshape([-1, 1])?.f_mul(&c.f_reshape([1, -1])?)?)?, to)
}

/// Sums by scales of columns, each row rescaled by a shift less its own.
pub(crate) fn finish_shifted(sums: &Tensor, (s, c): (&Tensor, &Tensor), to: Precision) -> Result<Tensor, TchError> {
    let c = c.f_to_kind(Kind::Int64)?.f_reshape([1, -1])?;
    let sums = sums.f_to_kind(Kind::Int64)?.f_mul(&c)?;
    let places = super::row_shifts(s)?.f_neg()?.f_add_scalar(i64::from(to.shift))?.f_expand_as(&sums)?;
    super::rescale_each(&sums, &places, to.limit)
}
