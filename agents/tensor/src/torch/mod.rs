//! Operators in libtorch's own operations: what runs on a GPU, and on any processor it supports.
//!
//! What moves or compares mantissas leaves them in their width. Everything else but matrix products is computed in
//! `int64`, where rule N-6 keeps every accumulator below 2^62; shifts are arithmetic, so that they are floors.
//!
//! | module | what lives there |
//! |---|---|
//! | `attention` to `tails` | the families of operators, as `tensorlink_num::operators` has them |
//! | [`matmul`], [`lengths`] | products of matrices; the lengths that they take |
//! | `controls`, `philox` | controls of rows; draws |

use tch::{Kind, TchError, Tensor};
use tensorlink_num::CheckedOperator;
use tensorlink_program::{EngineError, StepContext};
use tensorlink_types::TensorType;

use crate::tensor::{TorchTensor, device as failed, dims, kind};

pub(crate) mod attention;
mod chances;
mod choices;
mod controls;
mod elementwise;
pub(crate) mod embeddings;
mod gradients;
mod gumbel;
pub(crate) mod lengths;
mod linear;
pub(crate) mod matmul;
mod norms;
mod philox;
mod positions;
mod reductions;
mod roots;
mod runs;
mod sampling;
mod selections;
mod shifts;
mod softmax;
mod tables;
mod tails;

pub(crate) use self::shifts::row_shifts;

/// Limit of the 63-bit intermediate of Lookup and ExpNeg.
const LIMIT_63: i64 = (1 << 62) - 1;

/// A result in the output's width and shape.
///
/// # Errors
/// [`EngineError::Device`] if there is none, or it has another number of elements.
pub(crate) fn wrap(output: &TensorType, out: Result<Tensor, TchError>) -> Result<TorchTensor, EngineError> {
    let out = out.and_then(|out| laid_out(output, &out));
    TorchTensor::wrap(output.clone(), out.map_err(failed)?)
}

/// The same of a result that may share an operand's memory: whoever lent that may write or free it once the operand is
/// dropped, so the result is copied then.
///
/// # Errors
/// As [`wrap`].
pub(crate) fn wrap_own(
    output: &TensorType,
    out: Result<Tensor, TchError>,
    operands: &[&Tensor],
) -> Result<TorchTensor, EngineError> {
    let own = |out: Tensor| {
        if !operands.iter().any(|operand| begins_in(&out, operand)) {
            return Ok(out);
        }
        let mut copy = out.f_empty_like()?;
        copy.f_copy_(&out)?;
        Ok(copy)
    };
    let out = out.and_then(|out| own(laid_out(output, &out)?));
    TorchTensor::wrap(output.clone(), out.map_err(failed)?)
}

fn laid_out(output: &TensorType, out: &Tensor) -> Result<Tensor, TchError> {
    out.f_reshape(dims(output).as_slice())?.f_to_kind(kind(output.width()))?.f_contiguous()
}

/// Whether a tensor's first element lies in another's memory.
fn begins_in(tensor: &Tensor, other: &Tensor) -> bool {
    // Elements lie `stride` apart, in each dimension.
    let far: i64 = other.size().iter().zip(other.stride()).map(|(size, stride)| (size - 1) * stride).sum();
    let bytes = usize::try_from(far + 1).unwrap_or(usize::MAX).saturating_mul(other.kind().elt_size_in_bytes());
    let start = other.data_ptr().addr();
    (start..start.saturating_add(bytes)).contains(&tensor.data_ptr().addr())
}

/// Rule N-2 for elements below 2^62 in magnitude.
pub(crate) fn rescale(x: &Tensor, shift: i32, limit: i64) -> Result<Tensor, TchError> {
    let by = i64::from(shift.unsigned_abs());
    if shift > 0 {
        let odd = x.f_bitwise_right_shift_tensor_scalar(by)?.f_bitwise_and(1)?;
        let below_half = (1i64 << (by - 1)) - 1;
        let rounded = x.f_add_scalar(below_half)?.f_add(&odd)?.f_bitwise_right_shift_tensor_scalar(by)?;
        rounded.f_clamp(-limit, limit)
    } else {
        let top = limit >> by;
        let scaled = x.f_clamp(-top, top)?.f_bitwise_left_shift_tensor_scalar(by)?;
        scaled.f_masked_fill(&x.f_gt(top)?, limit)?.f_masked_fill(&x.f_lt(-top)?, -limit)
    }
}

/// `table[j]·(2^f − r) + table[j+1]·r` for every element; `j` and `r` have the same shape.
fn interpolate(table: &Tensor, j: &Tensor, r: &Tensor, fraction_bits: u32) -> Result<Tensor, TchError> {
    let flat = j.f_reshape([-1])?;
    let left = table.f_index_select(0, &flat)?.f_reshape(j.size())?;
    let right = table.f_index_select(0, &flat.f_add_scalar(1)?)?.f_reshape(j.size())?;
    left.f_bitwise_left_shift_tensor_scalar(i64::from(fraction_bits))?.f_add(&right.f_sub(&left)?.f_mul(r)?)
}

/// Rounds each element by its own number of places, at least one, half to even.
fn round_each(x: &Tensor, places: &Tensor) -> Result<Tensor, TchError> {
    let odd = x.f_bitwise_right_shift(places)?.f_bitwise_and(1)?;
    let half = places.f_ones_like()?.f_bitwise_left_shift(&places.f_sub_scalar(1)?)?;
    x.f_add(&half)?.f_sub_scalar(1)?.f_add(&odd)?.f_bitwise_right_shift(places)
}

/// Rule N-2, each element by its own number of places, −63 to 63.
pub(crate) fn rescale_each(x: &Tensor, places: &Tensor, limit: i64) -> Result<Tensor, TchError> {
    let right = round_each(x, &places.f_clamp_min(1)?)?.f_clamp(-limit, limit)?;
    let by = places.f_neg()?.f_clamp_min(0)?;
    let top = by.f_full_like(limit)?.f_bitwise_right_shift(&by)?;
    let bottom = top.f_neg()?;
    let left = x.f_minimum(&top)?.f_maximum(&bottom)?.f_bitwise_left_shift(&by)?;
    let left = left.f_where_self(&x.f_le_tensor(&top)?, &left.f_full_like(limit)?)?;
    let left = left.f_where_self(&x.f_ge_tensor(&bottom)?, &left.f_full_like(-limit)?)?;
    right.f_where_self(&places.f_gt(0)?, &left)
}

/// Where elements of a matrix are hidden from their row, whose tokens repeat after `tokens` rows (rule N-8).
fn hidden(a: &Tensor, tokens: i64) -> Result<Tensor, TchError> {
    let (rows, row) = a.size2()?;
    let options = (Kind::Int64, a.device());
    let token = Tensor::f_arange(rows, options)?.f_remainder(tokens)?.f_reshape([-1, 1])?;
    Tensor::f_arange(row, options)?.f_gt_tensor(&token)
}

/// An operator's operands, and what it needs to know besides.
pub(crate) struct Torch<'a> {
    /// In the operator's order.
    pub(crate) operands: &'a [&'a Tensor],
    /// Length of a row of the first operand.
    pub(crate) row: i64,
    /// Rows after which visibility begins anew (rule N-8).
    pub(crate) tokens: i64,
    /// Limit of the output's mantissas.
    pub(crate) limit: i64,
    /// Job key and step.
    pub(crate) context: &'a StepContext,
}

impl Torch<'_> {
    /// An operand in its own width.
    fn narrow(&self, i: usize) -> Result<&Tensor, TchError> {
        self.operands.get(i).copied().ok_or_else(|| TchError::Torch(format!("operand {i} is missing")))
    }

    fn operand(&self, i: usize) -> Result<Tensor, TchError> {
        self.narrow(i)?.f_to_kind(Kind::Int64)
    }

    /// An operand in rows as long as the first's.
    fn matrix(&self, i: usize) -> Result<Tensor, TchError> {
        self.operand(i)?.f_reshape([-1, self.row])
    }

    fn column(&self, i: usize) -> Result<Tensor, TchError> {
        self.operand(i)?.f_reshape([-1, 1])
    }

    /// The second operand repeats along the first.
    fn repeated(&self) -> Result<(Tensor, Tensor), TchError> {
        let b = self.operand(1)?.f_reshape([1, -1])?;
        Ok((self.operand(0)?.f_reshape([-1, b.numel() as i64])?, b))
    }

    /// Rule N-2 to the output; the check keeps shifts within ±63.
    fn rescale(&self, x: &Tensor, shift: i64) -> Result<Tensor, TchError> {
        rescale(x, shift as i32, self.limit)
    }
}

/// What libtorch's own operations compute.
trait OnTorch {
    /// In any shape with the output's number of elements and in the output's width or a larger one; may share an
    /// operand's memory.
    fn on_torch(&self, _on: &Torch<'_>) -> Result<Tensor, TchError> {
        Err(TchError::Torch("this operator is computed elsewhere".to_owned()))
    }
}

/// Computes every operator but products, Gather and Sample, as [`OnTorch`] says.
pub(crate) fn execute(checked: &CheckedOperator, on: &Torch<'_>) -> Result<Tensor, TchError> {
    macro_rules! each {
        ($($family:ident: $($name:ident),+;)*) => {
            match checked { $($(CheckedOperator::$name(op) => op.on_torch(on),)+)* }
        };
    }
    tensorlink_num::operators!(each)
}
