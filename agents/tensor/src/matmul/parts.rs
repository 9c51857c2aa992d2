//! Products by libtorch on the host, a part at a time. What it makes of operands and sums is several times as large as
//! they are, and takes memory that a stage has not said it takes: of a part that is little.

use std::ops::Range;

use tensorlink_program::EngineError;
use tensorlink_types::TensorType;

use super::{Heads, Product, Scales, malformed, size};
use crate::host::block::Precision;
use crate::host::elementwise::scale;
use crate::host::linear::scale_rows;
use crate::host::shifts::of_row;
use crate::simd::Simd;
use crate::slice::{Slice, SliceMut};
use crate::tensor::{TorchTensor, device as failed};
use crate::torch;
use crate::torch::matmul::Kernel;

/// Bytes that libtorch may take for a part of an operand, and for a part of the result.
const PART: usize = 8 << 20;

/// Rule N-11, N-25 or N-51.
///
/// # Errors
/// [`EngineError::Device`] when libtorch fails.
pub(super) fn product(
    simd: Simd,
    kernel: Kernel,
    product: &Product<'_>,
    to: Precision,
    output: &TensorType,
) -> Result<TorchTensor, EngineError> {
    let Product { a, b, offset, scales } = *product;
    let (m, n, k) = product.shape()?;
    let (of_operand, of_sum) = kernel.takes();
    let longest = (PART / (k * of_operand)).max(1);
    let columns = longest.min(n);
    let rows = longest.min(PART / (columns * of_sum)).clamp(1, m);
    let finish = Finishing::new(scales, to)?;
    TorchTensor::build(output, |mut out| {
        for column in (0..n).step_by(columns) {
            let right = columns.min(n - column);
            let b = b.data()?.f_narrow(0, column as i64, right as i64).map_err(failed)?;
            for row in (0..m).step_by(rows) {
                let left = rows.min(m - row);
                let a = a.data()?.f_narrow(0, row as i64, left as i64);
                let a = a.and_then(|a| a.f_narrow(1, offset as i64, k as i64)).map_err(failed)?;
                let sums = wrap(kernel.multiply(&a, &b, right as i64), kernel.bits(), [left, right])?;
                // Of whole rows all at once.
                let at_once = if right == n { left } else { 1 };
                for first in (0..left).step_by(at_once) {
                    let place = (row + first) * n + column;
                    let out = &mut out.within(place..place + at_once * right);
                    finish.write(simd, sums.slice()?.part(first * right), (row + first, column, right), out);
                }
            }
        }
        Ok(())
    })
}

/// Rule N-26 or N-27.
///
/// # Errors
/// [`EngineError::Device`] when libtorch fails.
pub(super) fn heads(
    simd: Simd,
    which: Heads,
    (a, b): (&TorchTensor, &TorchTensor),
    (heads, to): (usize, Precision),
    output: &TensorType,
) -> Result<TorchTensor, EngineError> {
    let (rows, kv_width, keys, width) = match which {
        Heads::Scores => (a.ty().rows(), b.ty().row(), b.ty().rows(), a.ty().row()),
        Heads::Mix => (output.rows(), b.ty().rows(), b.ty().row(), output.row()),
    };
    let (rows, keys, depth) = (size(rows)?, size(keys)?, size(width)? / heads);
    let kv_heads = size(kv_width)? / depth;
    let share = heads / kv_heads;
    let (of_operand, of_sum) = Kernel::F64.takes();
    let row = share * (keys + depth) * of_sum;
    let tall = (PART / row).clamp(1, rows);
    let wide = if tall == rows { PART / (rows * row + keys * depth * of_operand) } else { 1 }.clamp(1, kv_heads);
    let (a, b) = (a.data()?, b.data()?);
    let part =
        |dim: i64, tensor: &tch::Tensor, of: &Range<usize>| tensor.f_narrow(dim, of.start as i64, of.len() as i64);
    let finish = Finishing::Rescaled(to);
    TorchTensor::build(output, |mut out| {
        for group in (0..kv_heads).step_by(wide) {
            let group = group..kv_heads.min(group + wide);
            let (first, count) = (group.start * share, group.len() * share);
            let of_group = group.start * depth..group.end * depth;
            for row in (0..rows).step_by(tall) {
                let some = row..rows.min(row + tall);
                // Of scores each head's rows lie together, of what is mixed each row's heads: so many pieces of a
                // length, from one place on, so far apart.
                let (sums, (pieces, length), (place, apart)) = match which {
                    Heads::Scores => {
                        let queries =
                            part(0, a, &some).and_then(|a| part(1, &a, &(first * depth..(first + count) * depth)));
                        let sums =
                            queries.and_then(|q| torch::attention::scores(&q, &part(1, b, &of_group)?, count as i64));
                        (sums, (count, some.len() * keys), ((first * rows + row) * keys, rows * keys))
                    }
                    Heads::Mix => {
                        let chances = part(0, a, &(first..first + count)).and_then(|a| part(1, &a, &some));
                        let sums =
                            chances.and_then(|p| torch::attention::mix(&p, &part(0, b, &of_group)?, depth as i64));
                        (sums, (some.len(), count * depth), ((row * heads + first) * depth, heads * depth))
                    }
                };
                let sums = wrap(sums, Kernel::F64.bits(), [pieces, length])?;
                for piece in 0..pieces {
                    let place = place + piece * apart;
                    let out = &mut out.within(place..place + length);
                    finish.write(simd, sums.slice()?.part(piece * length), (0, 0, length), out);
                }
            }
        }
        Ok(())
    })
}

/// Sums of so many bits.
fn wrap(sums: Result<tch::Tensor, tch::TchError>, bits: u8, dims: [usize; 2]) -> Result<TorchTensor, EngineError> {
    let sums = sums.and_then(|sums| sums.f_reshape(dims.map(|dim| dim as i64))?.f_contiguous()).map_err(failed)?;
    TorchTensor::wrap(TensorType::new(bits, 0, &dims.map(|dim| dim as u32)).map_err(malformed)?, sums)
}

/// How sums become elements.
enum Finishing {
    /// Rescaled alike.
    Rescaled(Precision),
    /// Each row by a factor and to a precision of its own, each column by a factor.
    Rows(Vec<(i64, Precision)>, Vec<i64>),
}

impl Finishing {
    fn new(scales: Scales<'_>, to: Precision) -> Result<Self, EngineError> {
        Ok(match scales {
            Scales::None => Self::Rescaled(to),
            Scales::Rows(r, c) => {
                let rows = r.slice()?.to_wide().into_iter().map(|r| (r, to)).collect();
                Self::Rows(rows, c.slice()?.to_wide())
            }
            Scales::Shifts(s, c) => {
                let s = s.slice()?;
                let of = |m| (1, Precision { shift: to.shift - of_row(s, m), limit: to.limit });
                Self::Rows((0..s.len()).map(of).collect(), c.slice()?.to_wide())
            }
        })
    }

    /// Writes rows of some columns each, from one on.
    fn write(
        &self,
        simd: Simd,
        sums: Slice<'_>,
        (row, column, columns): (usize, usize, usize),
        out: &mut SliceMut<'_>,
    ) {
        match self {
            Self::Rows(rows, c) => scale_rows(simd, sums, (&rows[row..], &c[column..column + columns]), out),
            // int8 products stay below 2^26, so `i32` leaves room for rounding.
            Self::Rescaled(to) if matches!(sums, Slice::I32(_)) && i32::try_from(to.limit).is_ok() => {
                scale::<i32>(simd, sums, 1, *to, out);
            }
            Self::Rescaled(to) => scale::<i64>(simd, sums, 1, *to, out),
        }
    }
}
