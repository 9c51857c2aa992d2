//! Operators in libtorch's own operations: what runs on a GPU, and on any processor it supports.
//!
//! What moves or compares mantissas leaves them in their width. Everything else but matrix products is computed in
//! `int64`, where rule N-6 keeps every accumulator below 2^62; shifts are arithmetic, so that they are floors. Matrix
//! products are in [`matmul`] and [`heads`], the lengths that they take in [`lengths`], longer rules in `norm`, `rope`,
//! `sampling`, `training` and `random`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::bounds::MAX_ROW_SHIFT;
use tensorlink_program::{EngineError, StepContext};
use tensorlink_types::TensorType;

use crate::host::elementwise::Precision;
use crate::instruction::{Instruction, Lookup};
use crate::tensor::{TorchTensor, device as failed, dims, kind};

pub(crate) mod heads;
pub(crate) mod lengths;
pub(crate) mod matmul;
mod norm;
mod random;
mod rope;
mod sampling;
mod training;

/// Largest exponent of ExpNeg, in 16 fraction bits: beyond it the result is 0.
const EXP_MAX: i64 = 40 << 16;

/// Limit of the 63-bit intermediate of Lookup and ExpNeg.
const LIMIT_63: i64 = (1 << 62) - 1;

/// What an operator needs to know besides its operands.
pub(crate) struct Shape {
    /// Length of a row of the first operand.
    pub(crate) row: i64,
    /// Rows after which visibility begins anew (rule N-8).
    pub(crate) tokens: i64,
    /// Exponent of the second operand.
    pub(crate) exponent: i64,
    /// Rows and row of the output.
    pub(crate) output: (i64, i64),
    /// Limit of the output's mantissas.
    pub(crate) limit: i64,
}

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

fn lookup(x: &Tensor, table: &Tensor, attributes: &Lookup, limit: i64) -> Result<Tensor, TchError> {
    let Lookup { input_shift, low, fraction_bits, shift, index_bits } = *attributes;
    let end = 1i64 << (index_bits + fraction_bits);
    let u = rescale(x, input_shift, LIMIT_63)?.f_sub_scalar(low)?.f_clamp(0, end)?;
    let j = u.f_bitwise_right_shift_tensor_scalar(i64::from(fraction_bits))?.f_clamp_max((1i64 << index_bits) - 1)?;
    let r = u.f_sub(&j.f_bitwise_left_shift_tensor_scalar(i64::from(fraction_bits))?)?;
    rescale(&interpolate(table, &j, &r, fraction_bits)?, shift, limit)
}

fn exp_neg(z: &Tensor, table: &Tensor, multiplier: i64, shift: i32, limit: i64) -> Result<Tensor, TchError> {
    let u = rescale(&z.f_mul_scalar(multiplier)?, shift, LIMIT_63)?.f_clamp_max(EXP_MAX)?;
    let j = u.f_bitwise_right_shift_tensor_scalar(8)?.f_bitwise_and(0xff)?;
    let sum = interpolate(table, &j, &u.f_bitwise_and(0xff)?, 8)?;
    // n + 8 places, n being each element's own.
    let places = u.f_bitwise_right_shift_tensor_scalar(16)?.f_add_scalar(8)?;
    round_each(&sum, &places)?.f_clamp(-limit, limit)
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

/// Shifts of rows as rules N-50 and N-51 take them, as a column.
pub(crate) fn row_shifts(shifts: &Tensor) -> Result<Tensor, TchError> {
    shifts.f_to_kind(Kind::Int64)?.f_reshape([-1, 1])?.f_clamp(0, MAX_ROW_SHIFT)
}

/// Rule N-49 of rows.
fn row_shift(a: &Tensor, bits: u32) -> Result<Tensor, TchError> {
    let largest = a.f_abs()?.f_amax([1i64], true)?;
    // As many powers of two are at most a magnitude as it has bits.
    let one = Tensor::f_ones([1], (Kind::Int64, a.device()))?;
    let powers = one.f_bitwise_left_shift(&Tensor::f_arange(63, (Kind::Int64, a.device()))?)?;
    let length = largest.f_ge_tensor(&powers)?.f_sum_dim_intlist(&[1i64][..], false, Kind::Int64)?;
    length.f_sub_scalar(i64::from(bits) - 1)?.f_clamp_min(0)
}

/// Where elements of a matrix are hidden from their row, whose tokens repeat after `tokens` rows (rule N-8).
fn hidden(a: &Tensor, tokens: i64) -> Result<Tensor, TchError> {
    let (rows, row) = a.size2()?;
    let options = (Kind::Int64, a.device());
    let token = Tensor::f_arange(rows, options)?.f_remainder(tokens)?.f_reshape([-1, 1])?;
    Tensor::f_arange(row, options)?.f_gt_tensor(&token)
}

/// Rule N-30: table, scale and ids in whatever widths they have; only what is drawn is widened.
pub(crate) fn gather(
    (table, scale, ids): (&Tensor, &Tensor, &Tensor),
    tokens: i64,
    to: Precision,
) -> Result<Tensor, TchError> {
    let last = table.size2()?.0 - 1;
    let ids = ids.f_reshape([-1])?.f_narrow(0, 0, tokens)?.f_to_kind(Kind::Int64)?.f_clamp(0, last)?;
    let rows = table.f_index_select(0, &ids)?.f_to_kind(Kind::Int64)?;
    let scales = scale.f_reshape([-1])?.f_index_select(0, &ids)?.f_to_kind(Kind::Int64)?;
    rescale(&rows.f_mul(&scales.f_reshape([-1, 1])?)?, to.shift, to.limit)
}

/// `⌊(2·p·2^bits + z) / 2z⌋`; `p` a matrix, `z` a column.
fn normalize(p: &Tensor, z: &Tensor, bits: u32, limit: i64) -> Result<Tensor, TchError> {
    let z = z.f_clamp_min(1)?;
    let dividend = p.f_bitwise_left_shift_tensor_scalar(i64::from(bits) + 1)?.f_add(&z)?;
    dividend.f_div_tensor_mode(&z.f_mul_scalar(2)?, "floor")?.f_clamp(-limit, limit)
}

/// Computes every operator but products, Gather and Sample, in any shape with the output's number of elements and in
/// the output's width or a larger one. What it gives may share an operand's memory.
pub(crate) fn execute(
    instruction: &Instruction,
    operands: &[&Tensor],
    shape: &Shape,
    context: &StepContext,
) -> Result<Tensor, TchError> {
    let Shape { row, tokens, exponent, output, limit } = *shape;
    let narrow = |i: usize| {
        let missing = || TchError::Torch(format!("operand {i} of {instruction:?} is missing"));
        operands.get(i).copied().ok_or_else(missing)
    };
    let operand = |i: usize| narrow(i)?.f_to_kind(Kind::Int64);
    let matrix = |i: usize| operand(i)?.f_reshape([-1, row]);
    let column = |i: usize| operand(i)?.f_reshape([-1, 1]);
    // The second operand repeats along the first.
    let repeated = || {
        let b = operand(1)?.f_reshape([1, -1])?;
        Ok::<_, TchError>((operand(0)?.f_reshape([-1, b.numel() as i64])?, b))
    };
    match *instruction {
        Instruction::Transpose => narrow(0)?.f_transpose(-2, -1)?.f_contiguous(),
        Instruction::Combine { ca, cb, shift } => {
            let (a, b) = repeated()?;
            rescale(&a.f_mul_scalar(ca)?.f_add(&b.f_mul_scalar(cb)?)?, shift, limit)
        }
        Instruction::Scale { c, shift } => rescale(&operand(0)?.f_mul_scalar(c)?, shift, limit),
        Instruction::Mul { shift } => {
            let (a, b) = repeated()?;
            rescale(&a.f_mul(&b)?, shift, limit)
        }
        Instruction::Relu => narrow(0)?.f_clamp_min(0),
        Instruction::ReluGrad => narrow(0)?.f_masked_fill(&narrow(1)?.f_le(0)?, 0),
        Instruction::Lookup(attributes) => lookup(&operand(0)?, &operand(1)?, &attributes, limit),
        Instruction::RowMax { causal: true, .. } => {
            let a = narrow(0)?.f_reshape([-1, row])?;
            // A row sees its own token at least.
            a.f_masked_fill(&hidden(&a, tokens)?, -limit)?.f_amax([1i64], false)
        }
        Instruction::RowMax { run, .. } => narrow(0)?.f_reshape([-1, run as i64])?.f_amax([1i64], false),
        Instruction::RowAbsMax { run } => narrow(0)?.f_reshape([-1, run as i64])?.f_abs()?.f_amax([1i64], false),
        Instruction::ExpNeg { multiplier, input_shift, causal } => {
            let z = column(1)?.f_sub(&matrix(0)?)?.f_clamp_min(0)?;
            let y = exp_neg(&z, &operand(2)?, multiplier, input_shift, limit)?;
            if causal { y.f_masked_fill(&hidden(&z, tokens)?, 0) } else { Ok(y) }
        }
        Instruction::Norm(attributes) => norm::norm(&operand(0)?, (&operand(1)?, &operand(2)?), &attributes, limit),
        Instruction::Rope { heads, shift } => {
            rope::rope(&matrix(0)?, &operand(1)?, heads as i64, (shift, limit, exponent))
        }
        Instruction::RowSum { run, shift } => {
            let parts = operand(0)?.f_reshape([-1, run as i64])?;
            rescale(&parts.f_sum_dim_intlist(&[1i64][..], false, Kind::Int64)?, shift, limit)
        }
        Instruction::Normalize { bits } => normalize(&matrix(0)?, &column(1)?, bits, limit),
        Instruction::OneHotSub { one, shift } => {
            let p = matrix(0)?;
            let columns = Tensor::f_arange(row, (Kind::Int64, p.device()))?;
            let hit = column(1)?.f_eq_tensor(&columns)?;
            rescale(&p.f_sub(&hit.f_to_kind(Kind::Int64)?.f_mul_scalar(one)?)?, shift, limit)
        }
        Instruction::RowArgMax { run } => sampling::first_largest(&narrow(0)?.f_reshape([-1, run as i64])?),
        Instruction::RowPick { run } => sampling::pick(&narrow(0)?.f_reshape([-1, run as i64])?, &column(1)?),
        Instruction::TailSum { run, bound, weighted, shift } => {
            let parts = [-1, row / run as i64, run as i64];
            let part = |i: usize| operand(i)?.f_reshape(parts);
            let least = operand(2)?.f_add_scalar(bound)?.f_reshape([-1, 1, 1])?;
            let w = if weighted { Some(part(1)?) } else { None };
            rescale(&sampling::tail_sum(&part(0)?, w.as_ref(), &least)?, shift, limit)
        }
        Instruction::Threshold { step } => {
            let operands = [&operand(0)?, &operand(1)?, &operand(2)?, &operand(3)?, &operand(4)?];
            sampling::threshold(operands, step, limit)
        }
        Instruction::Perturb { bound, places, shift } => {
            let least = column(1)?.f_add_scalar(bound)?;
            let operands = (&matrix(0)?, &least, &operand(2)?, &operand(3)?);
            sampling::perturb(operands, i64::from(places), (shift, limit))
        }
        Instruction::Choose { length } => {
            sampling::choose((&operand(0)?, &operand(1)?, &operand(2)?), length, (row, limit))
        }
        Instruction::RowCombine { ca, cb, shift } => {
            let (a, b) = training::runs(&operand(0)?, &operand(1)?)?;
            rescale(&a.f_mul_scalar(ca)?.f_add(&b.f_mul_scalar(cb)?)?, shift, limit)
        }
        Instruction::RowMul { shift } => {
            let (a, b) = training::runs(&operand(0)?, &operand(1)?)?;
            rescale(&a.f_mul(&b)?, shift, limit)
        }
        Instruction::InverseNorm { run, spread, shift } => {
            norm::inverse_norm(&operand(0)?.f_reshape([-1, run as i64])?, &spread, (shift, limit))
        }
        Instruction::GatherGrad { shift } => training::gather_grad(&operand(0)?, &operand(1)?, output, (shift, limit)),
        Instruction::Ratio { bits, floor } => training::ratio(&operand(0)?, &operand(1)?, (bits, floor), limit),
        Instruction::Shrink { most, bits } => training::shrink(&operand(0)?, (most, bits), limit),
        Instruction::AtStep => training::at_step(narrow(0)?, context.step, output.1),
        Instruction::GroupSum { heads, shift } => {
            training::group_sum(&matrix(0)?, (row / heads as i64, output.1), (shift, limit))
        }
        Instruction::Dropout(attributes) => random::dropout(&operand(0)?, &attributes, context, limit),
        Instruction::Slice { offset } => narrow(0)?.f_reshape([-1, row])?.f_narrow(1, offset as i64, output.1),
        Instruction::Dither { bits, stream } => {
            random::dither(&matrix(0)?, &column(1)?, (bits, stream), context, limit)
        }
        Instruction::RowShift { run, bits } => row_shift(&operand(0)?.f_reshape([-1, run as i64])?, bits),
        Instruction::ShiftRows => {
            let a = matrix(0)?;
            let places = row_shifts(&operand(1)?)?.f_expand_as(&a)?;
            rescale_each(&a, &places, limit)
        }
        Instruction::MatMul { .. }
        | Instruction::ScaledMatMul { .. }
        | Instruction::ShiftedMatMul { .. }
        | Instruction::HeadScores { .. }
        | Instruction::HeadMix { .. }
        | Instruction::Gather { .. }
        | Instruction::Sample { .. } => Err(TchError::Torch("this operator is computed elsewhere".to_owned())),
    }
}
