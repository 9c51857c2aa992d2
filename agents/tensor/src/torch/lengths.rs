//! Lengths in which `_int_mm` takes matrices.

use tch::{Device, TchError, Tensor};

/// What CUDA wants lengths to be multiples of.
const UNIT: i64 = 8;

/// Smallest multiple of `unit` that holds `n`.
const fn padded(n: i64, unit: i64) -> i64 {
    (n + unit - 1) / unit * unit
}

/// Rows, columns and length of a dot product as `_int_mm` takes them: CUDA wants more than 16 rows, and the other
/// lengths in multiples of 8; on the host, libtorch 2.11 answers noise for dot products of one element.
pub(super) fn taken((m, n, k): (i64, i64, i64), device: Device) -> (i64, i64, i64) {
    match device {
        Device::Cpu => (m, n, k.max(2)),
        _ => (padded(m.max(17), UNIT), padded(n, UNIT), padded(k, UNIT)),
    }
}

/// A matrix with zeros below and to its right.
pub(super) fn grown(matrix: &Tensor, rows: i64, row: i64) -> Result<Tensor, TchError> {
    let (m, k) = matrix.size2()?;
    if (rows, row) == (m, k) { Ok(matrix.shallow_clone()) } else { matrix.f_constant_pad_nd([0, row - k, 0, rows - m]) }
}

/// A matrix on a GPU in the lengths in which `_int_mm` takes it as its second, so that it need not be copied there for
/// every product.
pub(crate) fn as_second(matrix: &Tensor) -> Result<Tensor, TchError> {
    let (n, k) = matrix.size2()?;
    grown(matrix, padded(n, UNIT), padded(k, UNIT))
}
