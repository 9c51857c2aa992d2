//! Operators on the host, in one pass over libtorch's memory each.
//!
//! | module | what lives there |
//! |---|---|
//! | [`block`] | the pass itself: widen, compute, rescale, narrow |
//! | [`elementwise`] | Combine, Scale, Mul, Relu, ReluGrad |
//! | [`fused`], [`wide`] | Combine, Mul and Lookup of words; of more bits, and ShiftRows |
//! | [`table`], [`exp`], [`values`] | Lookup; ExpNeg; functions computed once for each argument |
//! | [`rows`] | RowMax, RowAbsMax, RowSum, OneHotSub |
//! | [`runs`] | RowCombine, RowMul |
//! | [`run`] | those and Ratio, one after another, a block at a time |
//! | [`divide`], [`shift`] | Normalize; RowShift, and ShiftRows of what is not wide |
//! | [`ratio`], [`quotient`] | Ratio, Shrink; exact quotients and roots of 64 bits |
//! | [`random`], [`philox`] | Dropout, Dither; draws |
//! | [`scatter`], [`groups`] | GatherGrad; GroupSum |
//! | `softmax` | RowMax, ExpNeg, RowSum and Normalize of a row at a time, within attention |
//! | [`norm`], [`rope`] | Norm and InverseNorm; Rope |
//! | [`choose`] | RowArgMax, RowPick, Choose |
//! | [`tail`], [`perturb`] | TailSum and Threshold; Perturb |
//! | [`scales`] | Gather, and ScaledMatMul's scales for products of libtorch |
//! | [`stream`] | memory beyond the caches |
//! | [`layout`] | Transpose, Slice, AtStep |
//! | `vnni`, `amx` | MatMul, ScaledMatMul, HeadScores and HeadMix by AVX-512 VNNI, and by AMX |

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
pub(crate) mod block;
pub(crate) mod choose;
pub(crate) mod divide;
pub(crate) mod elementwise;
pub(crate) mod exp;
pub(crate) mod fused;
pub(crate) mod groups;
pub(crate) mod layout;
pub(crate) mod norm;
pub(crate) mod perturb;
pub(crate) mod philox;
pub(crate) mod quotient;
pub(crate) mod random;
pub(crate) mod ratio;
pub(crate) mod rope;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod scales;
pub(crate) mod scatter;
pub(crate) mod shift;
#[cfg(target_arch = "x86_64")]
pub(crate) mod softmax;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod tail;
pub(crate) mod values;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vnni;
pub(crate) mod wide;

use tensorlink_num::bounds::{DITHER_DRAWS, DROPOUT_DRAWS};
use tensorlink_program::{EngineError, StepContext};
use tensorlink_types::Operator;

use crate::instruction::{Instruction, magnitude};
use crate::simd::Simd;
use crate::slice::{Slice, SliceMut, each_width};
use crate::tensor::TorchTensor;
use block::fits_i32;
use elementwise::Precision;
use rows::Rows;

/// Runs one body for an operand and an output of the same width.
macro_rules! same_width {
    ($a:expr, $out:expr, ($x:ident, $y:ident) => $body:expr) => {
        match ($a, $out) {
            (Slice::I8($x), SliceMut::I8($y)) => $body,
            (Slice::I16($x), SliceMut::I16($y)) => $body,
            (Slice::I32($x), SliceMut::I32($y)) => $body,
            (Slice::I64($x), SliceMut::I64($y)) => $body,
            _ => return Err(EngineError::Malformed("output and operand differ in width".to_owned())),
        }
    };
}

/// Rule N-12 of `m × n` matrices, one after another.
///
/// # Errors
/// [`EngineError::Malformed`] if the output has another width.
pub(crate) fn transposed(
    simd: Simd,
    a: Slice<'_>,
    (m, n): (usize, usize),
    out: &mut SliceMut<'_>,
) -> Result<(), EngineError> {
    same_width!(a, out, (a, out) => {
        for (a, out) in a.chunks_exact(m * n).zip(out.chunks_exact_mut(m * n)) {
            layout::transpose(simd, a, (m, n), out);
        }
    });
    Ok(())
}

/// Computes every operator but products and Sample; the operator was checked, and the operands are of its types.
///
/// # Errors
/// [`EngineError::Device`] if memory runs out or an operand is not in host memory.
pub(crate) fn execute(
    simd: Simd,
    instruction: &Instruction,
    operator: &Operator,
    operands: &[&TorchTensor],
    context: &StepContext,
) -> Result<TorchTensor, EngineError> {
    let tensor =
        |i: usize| operands.get(i).ok_or_else(|| EngineError::Malformed(format!("{operator}: operand {i} is missing")));
    let operand = |i: usize| tensor(i)?.slice();
    let reach = |i: usize| tensor(i).map(|t| magnitude(t.ty()));
    let first = tensor(0)?.ty();
    let (row, a) = (first.row() as usize, operand(0)?);
    let limit = operator.output.limit();
    let to = |shift| Precision { shift, limit };
    let visible = |length: usize, causal: bool| {
        // A causal operand has at least two dimensions.
        let tokens = first.dims().iter().rev().nth(1).map(|tokens| *tokens as usize);
        Rows { length, causal: tokens.filter(|_| causal) }
    };
    // Operands must fit too: a coefficient of 0 bounds nothing.
    let loads = operands.iter().map(|t| magnitude(t.ty())).max().unwrap_or(0);
    let narrow = |bound: u128| fits_i32(bound.max(loads), limit);
    TorchTensor::build(&operator.output, |mut out| {
        let out = &mut out;
        match *instruction {
            Instruction::Transpose => {
                let rows = first.dims().iter().rev().nth(1).map_or(1, |rows| *rows as usize);
                transposed(simd, a, (rows, row), out)?;
            }
            Instruction::Combine { ca, cb, shift } => {
                let b = operand(1)?;
                let bound = reach(0)? * u128::from(ca.unsigned_abs()) + reach(1)? * u128::from(cb.unsigned_abs());
                let fused = narrow(bound) && fused::serves(shift);
                if let (true, Slice::I16(a), Slice::I16(b), SliceMut::I16(out)) = (fused, a, b, &mut *out) {
                    fused::combine(simd, (a, ca as i32), (b, cb as i32), to(shift), out);
                } else if narrow(bound) {
                    elementwise::combine::<i32>(simd, (a, ca), (b, cb), to(shift), out);
                } else if let (true, Slice::I32(a), Slice::I32(b), SliceMut::I32(out)) =
                    (wide::serves(shift), a, b, &mut *out)
                {
                    wide::combine(simd, (a, ca), (b, cb), to(shift), out);
                } else {
                    elementwise::combine::<i64>(simd, (a, ca), (b, cb), to(shift), out);
                }
            }
            Instruction::Scale { c, shift } => {
                if narrow(reach(0)? * u128::from(c.unsigned_abs())) {
                    elementwise::scale::<i32>(simd, a, c, to(shift), out);
                } else {
                    elementwise::scale::<i64>(simd, a, c, to(shift), out);
                }
            }
            Instruction::Mul { shift } => {
                let (b, bound) = (operand(1)?, reach(0)? * reach(1)?);
                let fused = narrow(bound) && fused::serves(shift);
                if let (true, Slice::I16(a), Slice::I16(b), SliceMut::I16(out)) = (fused, a, b, &mut *out) {
                    fused::mul(simd, a, b, to(shift), out);
                } else if narrow(bound) {
                    elementwise::mul::<i32>(simd, a, b, to(shift), out);
                } else if let (true, Slice::I32(a), Slice::I32(b), SliceMut::I32(out)) =
                    (wide::serves(shift), a, b, &mut *out)
                {
                    wide::mul(simd, a, b, to(shift), out);
                } else {
                    elementwise::mul::<i64>(simd, a, b, to(shift), out);
                }
            }
            Instruction::Relu => same_width!(a, out, (a, out) => elementwise::relu(simd, a, out)),
            Instruction::ReluGrad => {
                let x = operand(1)?;
                same_width!(a, out, (dy, out) => each_width!(Slice, x, x => elementwise::relu_grad(simd, dy, x, out)));
            }
            Instruction::Lookup(attributes) => {
                let table = (operand(1)?, tensor(1)?.ty().limit());
                table::lookup(simd, (a, first.limit()), table, &attributes, limit, out);
            }
            Instruction::RowMax { run, causal } => {
                same_width!(a, out, (a, out) => rows::row_max(simd, a, visible(run, causal), out));
            }
            Instruction::RowAbsMax { run } => same_width!(a, out, (a, out) => rows::row_abs_max(simd, a, run, out)),
            Instruction::RowArgMax { run } => {
                let SliceMut::I32(out) = out else {
                    return Err(EngineError::Malformed("RowArgMax gives 32 bits".to_owned()));
                };
                choose::row_arg_max(simd, a, run, out);
            }
            Instruction::RowPick { run } => {
                let place = operand(1)?;
                same_width!(a, out, (a, out) => choose::row_pick(a, place, run, out));
            }
            Instruction::TailSum { run, bound, weighted, shift } => {
                let tail = tail::Tail { row, run, bound, weighted };
                tail::tail_sum(simd, (a, operand(1)?, operand(2)?), &tail, to(shift), out);
            }
            Instruction::Threshold { step } => {
                tail::threshold(simd, [a, operand(1)?, operand(2)?, operand(3)?, operand(4)?], step, limit, out);
            }
            Instruction::Perturb { bound, places, shift } => {
                let perturb = perturb::Perturb { row, bound, places };
                perturb::perturb(simd, [a, operand(1)?, operand(2)?, operand(3)?], &perturb, to(shift), out);
            }
            Instruction::Choose { length } => {
                choose::choose(simd, (a, operand(1)?, operand(2)?), length, limit, out);
            }
            Instruction::ExpNeg { multiplier, input_shift, causal } => {
                let distance = i64::try_from(reach(0)? + reach(1)?).unwrap_or(i64::MAX);
                let attributes = exp::ExpNeg { multiplier, input_shift, distance, limit };
                let SliceMut::I32(out) = out else {
                    return Err(EngineError::Malformed("ExpNeg gives 26 bits".to_owned()));
                };
                exp::exp_neg(simd, (a, operand(1)?, operand(2)?), attributes, visible(row, causal), out);
            }
            Instruction::RowSum { run, shift } => rows::row_sum(simd, a, run, to(shift), out),
            Instruction::Normalize { bits } => {
                let mut z = operand(1)?.to_wide();
                divide::normalize(simd, (a, first.limit()), (&mut z, row), bits, limit, out);
            }
            Instruction::OneHotSub { one, shift } => {
                rows::one_hot_sub(simd, a, (operand(1)?, row), one, to(shift), out);
            }
            Instruction::Norm(attributes) => {
                norm::norm(simd, a, (operand(1)?, operand(2)?), &attributes, limit, out);
            }
            Instruction::Rope { heads, shift } => {
                let table = tensor(1)?.ty();
                // The check keeps the table's exponent between 0 and 15.
                let fraction = u32::try_from(table.exponent()).unwrap_or_default();
                let lengths = rope::Rope { row, depth: row / heads, turned: table.row() as usize, fraction };
                rope::rope(simd, (a, operand(1)?), &lengths, to(shift), out);
            }
            Instruction::Gather { shift } => {
                let (table, ids) = ((a, operand(1)?), (operand(2)?, row));
                if fits_i32(reach(0)? * reach(1)?, limit) {
                    scales::gather::<i32>(simd, table, ids, to(shift), out);
                } else {
                    scales::gather::<i64>(simd, table, ids, to(shift), out);
                }
            }
            Instruction::RowCombine { ca, cb, shift } => {
                let b = operand(1)?;
                let bound = reach(0)? * u128::from(ca.unsigned_abs()) + reach(1)? * u128::from(cb.unsigned_abs());
                let fused = narrow(bound) && fused::serves(shift) && runs::long(a, b);
                if let (true, Slice::I16(a), Slice::I16(b), SliceMut::I16(out)) = (fused, a, b, &mut *out) {
                    fused::row_combine(simd, (a, ca as i32), (b, cb as i32), to(shift), out);
                } else if narrow(bound) {
                    runs::row_combine::<i32>(simd, (a, ca), (b, cb), to(shift), out);
                } else {
                    runs::row_combine::<i64>(simd, (a, ca), (b, cb), to(shift), out);
                }
            }
            Instruction::RowMul { shift } => {
                let (b, bound) = (operand(1)?, reach(0)? * reach(1)?);
                let fused = narrow(bound) && fused::serves(shift) && runs::long(a, b);
                if let (true, Slice::I16(a), Slice::I16(b), SliceMut::I16(out)) = (fused, a, b, &mut *out) {
                    fused::row_mul(simd, a, b, to(shift), out);
                } else if narrow(bound) {
                    runs::row_mul::<i32>(simd, a, b, to(shift), out);
                } else {
                    runs::row_mul::<i64>(simd, a, b, to(shift), out);
                }
            }
            Instruction::InverseNorm { run, spread, shift } => {
                norm::inverse_norm(simd, (a, run), &spread, to(shift), out);
            }
            Instruction::GatherGrad { shift } => {
                scatter::gather_grad(simd, a, operand(1)?, operator.output.row() as usize, to(shift), out);
            }
            Instruction::Ratio { bits, floor } => ratio::ratio(simd, a, operand(1)?, (bits, floor), limit, out),
            Instruction::Shrink { most, bits } => ratio::shrink(simd, a, (most, bits), limit, out),
            Instruction::AtStep => same_width!(a, out, (a, out) => layout::at_step(a, context.step, out)),
            Instruction::GroupSum { heads, shift } => {
                let lengths = (row / heads, operator.output.row() as usize);
                groups::group_sum(simd, a, lengths, to(shift), out);
            }
            Instruction::Dropout(attributes) => {
                let draws = random::Draws::new(context, attributes.stream, DROPOUT_DRAWS);
                random::dropout(simd, a, (&attributes, draws), limit, out);
            }
            Instruction::Slice { offset } => {
                let lengths = (row, operator.output.row() as usize);
                same_width!(a, out, (a, out) => layout::slice(a, lengths, offset, out));
            }
            Instruction::Dither { bits, stream } => {
                let draws = random::Draws::new(context, stream, DITHER_DRAWS);
                // At most 32.
                random::dither(simd, (a, row), operand(1)?, (to(bits as i32), draws), out);
            }
            Instruction::RowShift { run, bits } => shift::row_shifts(simd, a, (run, bits), out),
            Instruction::ShiftRows => {
                let shifts = operand(1)?;
                if fits_i32(reach(0)?, limit) {
                    shift::shift_rows::<i32>(simd, (a, row), shifts, limit, out);
                } else {
                    shift::shift_rows::<i64>(simd, (a, row), shifts, limit, out);
                }
            }
            Instruction::MatMul { .. }
            | Instruction::ScaledMatMul { .. }
            | Instruction::ShiftedMatMul { .. }
            | Instruction::HeadScores { .. }
            | Instruction::HeadMix { .. }
            | Instruction::Sample { .. } => {
                return Err(EngineError::Malformed(format!("{operator} is not computed here")));
            }
        }
        Ok(())
    })
}
