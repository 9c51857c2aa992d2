//! Whole operators. Rule N-6, checked first, keeps every accumulator below 2^62, so `i64` holds them exactly; the tests
//! compare every element with the `i128` form in [`crate::element()`].
//!
//! | module | what lives there |
//! |---|---|
//! | `linear` | dot products: MatMul, ScaledMatMul, HeadScores, HeadMix; Transpose |
//! | `elementwise` | Combine, Scale, Mul, Relu, ReluGrad, Lookup |
//! | `rows` | RowMax, RowAbsMax, RowSum, ExpNeg, Normalize, OneHotSub, Norm |
//! | `choice` | Sample, Gather, Rope: elements moved and combined |
//! | `sampling` | RowArgMax, RowPick, TailSum, Threshold, Perturb, Choose |
//! | `training` | RowCombine, RowMul, GatherGrad, GroupSum, Slice, AtStep |
//! | `optimizer` | Ratio, Shrink |
//! | `random` | Dropout, Dither |
//! | `shifted` | RowShift, ShiftRows, ShiftedMatMul |

mod choice;
mod elementwise;
mod linear;
mod optimizer;
mod random;
mod rows;
mod sampling;
mod shifted;
mod training;

use tensorlink_types::Operator;

use crate::checked::CheckedOperator;
use crate::context::StepContext;
use crate::error::OpError;
use crate::fixed::limit;
use crate::tensor::Tensor;

/// Computes an operator; `operands` in its order and of the types it names.
///
/// # Errors
/// A rule the operator breaks; [`OpError::OperandType`]; [`OpError::Memory`].
pub fn execute(operator: &Operator, operands: &[&Tensor], context: &StepContext) -> Result<Tensor, OpError> {
    let checked = CheckedOperator::new(operator)?;
    let (opcode, expected, actual) = (operator.opcode, operator.operands.len(), operands.len());
    let count = OpError::OperandCount { opcode, expected, actual };
    if expected != actual {
        return Err(count);
    }
    for (operand, (named, tensor)) in operator.operands.iter().zip(operands).enumerate() {
        if named.ty != *tensor.ty() {
            return Err(OpError::OperandType { operand, expected: named.ty.clone(), actual: tensor.ty().clone() });
        }
    }
    let nth = |i: usize| operands.get(i).copied().ok_or_else(|| count.clone());
    let op = operator;
    let a = nth(0)?;
    let values = match checked {
        CheckedOperator::MatMul { depth, shift, .. } => linear::mat_mul(op, a, nth(1)?, depth, shift),
        CheckedOperator::Transpose { rows, columns } => linear::transpose(op, a, rows, columns),
        CheckedOperator::Combine { ca, cb, shift, .. } => elementwise::combine(op, a, nth(1)?, (ca, cb), shift),
        CheckedOperator::Scale { c, shift } => elementwise::scale(op, a, c, shift),
        CheckedOperator::Mul { shift, .. } => elementwise::mul(op, a, nth(1)?, shift),
        CheckedOperator::Relu => elementwise::relu(op, a),
        CheckedOperator::ReluGrad => elementwise::relu_grad(op, a, nth(1)?),
        CheckedOperator::Lookup(lookup) => elementwise::lookup(op, a, nth(1)?, &lookup),
        CheckedOperator::RowMax { depth, visible } => rows::row_max(op, a, depth, visible),
        CheckedOperator::ExpNeg { depth, multiplier, input_shift, visible } => {
            let fixed = Rescale { shift: input_shift, limit: limit(63) };
            rows::exp_neg(op, [a, nth(1)?, nth(2)?], depth, (multiplier, fixed), visible)
        }
        CheckedOperator::RowSum { depth, shift } => rows::row_sum(op, a, depth, shift),
        CheckedOperator::Normalize { depth, bits } => rows::normalize(op, a, nth(1)?, depth, bits),
        CheckedOperator::OneHotSub { depth, one, shift } => rows::one_hot_sub(op, a, nth(1)?, depth, one, shift),
        CheckedOperator::Sample { population, width, first_row } => {
            choice::sample(op, a, context, (population, width), first_row)
        }
        CheckedOperator::ScaledMatMul(product) => linear::scaled_mat_mul(op, [a, nth(1)?, nth(2)?, nth(3)?], &product),
        CheckedOperator::HeadScores(heads) => linear::head_scores(op, a, nth(1)?, &heads),
        CheckedOperator::HeadMix(heads) => linear::head_mix(op, a, nth(1)?, &heads),
        CheckedOperator::Norm(norm) => rows::norm(op, [a, nth(1)?, nth(2)?], &norm),
        CheckedOperator::Rope(rope) => choice::rope(op, a, nth(1)?, &rope),
        CheckedOperator::Gather { entries, width, shift } => {
            choice::gather(op, [a, nth(1)?, nth(2)?], (entries, width), shift)
        }
        CheckedOperator::RowAbsMax { depth } => rows::row_abs_max(op, a, depth),
        CheckedOperator::RowArgMax { depth } => sampling::row_arg_max(op, a, depth),
        CheckedOperator::RowPick { depth } => sampling::row_pick(op, a, nth(1)?, depth),
        CheckedOperator::TailSum(tail) => sampling::tail_sum(op, [a, nth(1)?, nth(2)?], &tail),
        CheckedOperator::Threshold { parts, step } => {
            sampling::threshold(op, [a, nth(1)?, nth(2)?, nth(3)?, nth(4)?], parts, step)
        }
        CheckedOperator::Perturb(perturb) => sampling::perturb(op, [a, nth(1)?, nth(2)?, nth(3)?], &perturb),
        CheckedOperator::Choose { parts, length } => sampling::choose(op, [a, nth(1)?, nth(2)?], parts, length),
        CheckedOperator::RowCombine { run, ca, cb, shift } => {
            training::row_combine(op, a, nth(1)?, run, (ca, cb, shift))
        }
        CheckedOperator::RowMul { run, shift } => training::row_mul(op, a, nth(1)?, run, shift),
        CheckedOperator::InverseNorm(norm) => rows::inverse_norm(op, a, &norm),
        CheckedOperator::GatherGrad { tokens, width, shift, .. } => {
            training::gather_grad(op, a, nth(1)?, (tokens, width), shift)
        }
        CheckedOperator::Ratio { places, floor } => optimizer::ratio(op, a, nth(1)?, places, floor),
        CheckedOperator::Shrink { places, limit } => optimizer::shrink(op, a, places, limit),
        CheckedOperator::AtStep { rows, width } => training::at_step(op, a, context, rows, width),
        CheckedOperator::GroupSum(heads) => training::group_sum(op, a, &heads),
        CheckedOperator::Dropout { keep, stream, c, shift } => {
            random::dropout(op, a, context, (keep, stream), (c, shift))
        }
        CheckedOperator::Slice { row, width, offset } => training::slice(op, a, row, width, offset),
        CheckedOperator::Dither { depth, places, stream } => {
            random::dither(op, [a, nth(1)?], context, depth, (places, stream))
        }
        CheckedOperator::RowShift { depth, bits } => shifted::row_shifts(op, a, depth, bits),
        CheckedOperator::ShiftRows { depth } => shifted::shift_rows(op, a, nth(1)?, depth),
        CheckedOperator::ShiftedMatMul(product) => {
            shifted::shifted_mat_mul(op, [a, nth(1)?, nth(2)?, nth(3)?], &product)
        }
    };
    Ok(Tensor::from_wide(operator.output.clone(), &values?)?)
}

/// Collects as many values as the output has elements.
fn collect(operator: &Operator, values: impl Iterator<Item = i64>) -> Result<Vec<i64>, OpError> {
    let elements = operator.output.elements();
    let mut out = Vec::new();
    usize::try_from(elements).ok().and_then(|n| out.try_reserve_exact(n).ok()).ok_or(OpError::Memory(elements))?;
    out.extend(values);
    Ok(out)
}

fn wide(tensor: &Tensor) -> Vec<i64> {
    tensor.mantissas().to_vec()
}

/// A length that the checker found in a tensor's type, for slices; at least 1.
fn length(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX).max(1)
}

fn rows<T>(values: &[T], depth: u64) -> std::slice::ChunksExact<'_, T> {
    values.chunks_exact(length(depth))
}

/// The `row`-th row of `depth` elements; the checker keeps it inside.
fn nth_row<T>(values: &[T], row: u64, depth: u64) -> &[T] {
    let nth = usize::try_from(row).ok().and_then(|row| rows(values, depth).nth(row));
    nth.unwrap_or_default()
}

/// Rule N-2 for a fixed shift and output, on accumulators below 2^62.
#[derive(Clone, Copy)]
pub(super) struct Rescale {
    pub(super) shift: i64,
    pub(super) limit: i64,
}

impl Rescale {
    pub(super) fn new(shift: i64, op: &Operator) -> Self {
        Self { shift, limit: limit(op.output.bits()) }
    }

    pub(super) fn apply(&self, x: i64) -> i64 {
        // SAFETY of the cast: the checker keeps |shift| ≤ 63 (ExpNeg's n + 8 ≤ 48, Norm's 30 + f − j ≥ 0).
        let places = self.shift.unsigned_abs() as u32;
        if self.shift > 0 {
            let quotient = x.wrapping_shr(places);
            let rest = (x as u64) & u64::MAX.wrapping_shr(64u32.wrapping_sub(places));
            let half = 1u64.wrapping_shl(places.wrapping_sub(1));
            let up = rest > half || (rest == half && quotient & 1 == 1);
            return quotient.wrapping_add(i64::from(up)).clamp(self.limit.wrapping_neg(), self.limit);
        }
        // Comparing before shifting: x·2^n exceeds the limit exactly if x exceeds ⌊limit / 2^n⌋.
        let reach = self.limit.wrapping_shr(places);
        match x {
            x if x > reach => self.limit,
            x if x < reach.wrapping_neg() => self.limit.wrapping_neg(),
            x => x.wrapping_shl(places),
        }
    }
}
