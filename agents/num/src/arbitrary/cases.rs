//! How to draw an accepted operator of each opcode.

use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Opcode, TensorType};

use super::pieces::{
    Drawn, build, coefficient, dim, divisor_shape, exponent, parts, per_row, reduced_shape, shape, shift, ty,
};
use super::{CaseError, Dice, sampling, shifted, training, transformer};
use crate::checked::{COEFFICIENT_BOUND, EXP_BITS, EXP_EXPONENT};
use crate::tables::exp2_table;
use crate::tensor::Tensor;

pub(super) fn draw(opcode: Opcode, dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    match opcode {
        Opcode::MatMul => mat_mul(dice, size),
        Opcode::Transpose => transpose(dice, size),
        Opcode::Combine => combine(dice, size),
        Opcode::Scale => scale(dice, size),
        Opcode::Mul => mul(dice, size),
        Opcode::Relu => relu(dice, size),
        Opcode::ReluGrad => relu_grad(dice, size),
        Opcode::Lookup => lookup(dice, size),
        Opcode::RowMax => row_max(dice, size),
        Opcode::ExpNeg => exp_neg(dice, size),
        Opcode::RowSum => row_sum(dice, size),
        Opcode::Normalize => normalize(dice, size),
        Opcode::OneHotSub => one_hot_sub(dice, size),
        Opcode::Sample => sample(dice, size),
        Opcode::ScaledMatMul => transformer::scaled_mat_mul(dice, size),
        Opcode::HeadScores => transformer::head_scores(dice, size),
        Opcode::HeadMix => transformer::head_mix(dice, size),
        Opcode::Norm => transformer::norm(dice, size),
        Opcode::Rope => transformer::rope(dice, size),
        Opcode::Gather => transformer::gather(dice, size),
        Opcode::RowAbsMax => row_abs_max(dice, size),
        Opcode::RowArgMax => sampling::row_arg_max(dice, size),
        Opcode::RowPick => sampling::row_pick(dice, size),
        Opcode::TailSum => sampling::tail_sum(dice, size),
        Opcode::Threshold => sampling::threshold_step(dice, size),
        Opcode::Perturb => sampling::perturb(dice, size),
        Opcode::Choose => sampling::choose(dice, size),
        Opcode::RowCombine => training::row_combine(dice, size),
        Opcode::RowMul => training::row_mul(dice, size),
        Opcode::InverseNorm => training::inverse_norm(dice, size),
        Opcode::GatherGrad => training::gather_grad(dice, size),
        Opcode::Ratio => training::ratio(dice, size),
        Opcode::Shrink => training::shrink(dice, size),
        Opcode::AtStep => training::at_step(dice, size),
        Opcode::GroupSum => training::group_sum(dice, size),
        Opcode::Dropout => training::dropout(dice, size),
        Opcode::Slice => training::slice(dice, size),
        Opcode::Dither => training::dither(dice, size),
        Opcode::RowShift => shifted::row_shift(dice, size),
        Opcode::ShiftRows => shifted::shift_rows(dice, size),
        Opcode::ShiftedMatMul => shifted::shifted_mat_mul(dice, size),
    }
}

fn mat_mul(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let bits = if dice.once_in(2) { (2, 8) } else { (9, 16) };
    let long = dice.once_in(40);
    let depth = if long { MAX_REDUCTION as u32 } else { dim(dice, size.saturating_mul(4)) };
    let outer = if long { 2 } else { size };
    let (m, n) = (dim(dice, outer), dim(dice, outer));
    let (ea, eb, shift) = (exponent(dice), exponent(dice), shift(dice));
    let a = ty(dice, bits, ea, &[m, depth])?;
    let b = ty(dice, bits, eb, &[n, depth])?;
    let y = ty(dice, (2, 64), ea + eb - shift, &[m, n])?;
    Ok(build(Opcode::MatMul, vec![dice.tensor(&a)?, dice.tensor(&b)?], vec![shift], y))
}

fn transpose(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (m, n, e) = (dim(dice, size), dim(dice, size), exponent(dice));
    let batch: &[u32] = if dice.once_in(3) { &[dim(dice, 4)] } else { &[] };
    let a = ty(dice, (2, 64), e, &[batch, &[m, n]].concat())?;
    let y = TensorType::new(a.bits(), a.exponent(), &[batch, &[n, m]].concat())?;
    Ok(build(Opcode::Transpose, vec![dice.tensor(&a)?], vec![], y))
}

fn combine(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let dims = shape(dice, size);
    let (ea, eb, ey) = (exponent(dice), exponent(dice), exponent(dice));
    let a = ty(dice, (2, 62), ea, &dims)?;
    let small = divisor_shape(dice, &dims);
    let b = ty(dice, (2, 62), eb, &small)?;
    let y = ty(dice, (2, 64), ey, &dims)?;
    let attributes = vec![coefficient(dice, a.limit()), coefficient(dice, b.limit()), shift(dice)];
    Ok(build(Opcode::Combine, vec![dice.tensor(&a)?, dice.tensor(&b)?], attributes, y))
}

fn scale(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, ea, ey) = (shape(dice, size), exponent(dice), exponent(dice));
    let a = ty(dice, (2, 62), ea, &dims)?;
    let y = ty(dice, (2, 64), ey, &dims)?;
    let attributes = vec![coefficient(dice, a.limit()), shift(dice)];
    Ok(build(Opcode::Scale, vec![dice.tensor(&a)?], attributes, y))
}

fn mul(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let dims = shape(dice, size);
    let (ea, eb, shift) = (exponent(dice), exponent(dice), shift(dice));
    let a = ty(dice, (2, 62), ea, &dims)?;
    let small = divisor_shape(dice, &dims);
    let b = ty(dice, (2, (64 - i64::from(a.bits())).max(2)), eb, &small)?;
    let y = ty(dice, (2, 64), ea + eb - shift, &dims)?;
    Ok(build(Opcode::Mul, vec![dice.tensor(&a)?, dice.tensor(&b)?], vec![shift], y))
}

fn relu(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, e) = (shape(dice, size), exponent(dice));
    let a = ty(dice, (2, 64), e, &dims)?;
    Ok(build(Opcode::Relu, vec![dice.tensor(&a)?], vec![], a))
}

fn relu_grad(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, e) = (shape(dice, size), exponent(dice));
    let dy = ty(dice, (2, 64), e, &dims)?;
    let x = ty(dice, (2, 64), e, &dims)?;
    Ok(build(Opcode::ReluGrad, vec![dice.tensor(&dy)?, dice.tensor(&x)?], vec![], dy))
}

fn lookup(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let dims = shape(dice, size);
    let log = if dice.once_in(10) { 12 } else { dice.range(0, 6) };
    let fraction = dice.range(1, 16);
    let (ex, et, shift) = (exponent(dice), dice.range(0, 30), shift(dice));
    let x = ty(dice, (2, 63), ex, &dims)?;
    let table = ty(dice, (2, 32), et, &[(1 << log) + 1])?;
    let y = ty(dice, (2, 64), et + fraction - shift, &dims)?;
    // Mostly a domain about as wide as the input's range, so that cells inside and both ends are hit.
    let (input_shift, low) = if dice.once_in(4) {
        (dice.range(-63, 63), dice.mantissa(COEFFICIENT_BOUND - 1))
    } else {
        let reach = 1i64 << (log + fraction - 1);
        (i64::from(x.bits()) - log - fraction + dice.range(-1, 1), -reach + dice.range(-3, 3))
    };
    let attributes = vec![input_shift, low, fraction, shift];
    Ok(build(Opcode::Lookup, vec![dice.tensor(&x)?, dice.tensor(&table)?], attributes, y))
}

fn row_max(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, e) = (reduced_shape(dice, size), exponent(dice));
    let a = ty(dice, (2, 64), e, &dims)?;
    let causal = causal(dice, &dims);
    let reduced = if causal == 1 { per_row(&dims) } else { parts(dice, &a) };
    let y = TensorType::new(a.bits(), a.exponent(), &reduced)?;
    Ok(build(Opcode::RowMax, vec![dice.tensor(&a)?], vec![causal], y))
}

fn row_abs_max(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, e) = (reduced_shape(dice, size), exponent(dice));
    let a = ty(dice, (2, 64), e, &dims)?;
    let y = TensorType::new(a.bits(), a.exponent(), &parts(dice, &a))?;
    Ok(build(Opcode::RowAbsMax, vec![dice.tensor(&a)?], vec![], y))
}

/// The attribute of rule N-8, where the shape allows it.
fn causal(dice: &mut Dice, dims: &[u32]) -> i64 {
    i64::from(dims.len() >= 2 && dice.once_in(2))
}

fn exp_neg(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, e) = (shape(dice, size), dice.range(0, 20));
    let a = ty(dice, (2, 36), e, &dims)?;
    let max = ty(dice, (2, 36), e, &per_row(&dims))?;
    let table = if dice.once_in(4) {
        let ty = ty(dice, (2, 32), 24, &[257])?;
        dice.tensor(&ty)?
    } else {
        exp2_table()?
    };
    let (multiplier, input_shift) =
        if dice.once_in(4) { (dice.range(1, (1 << 24) - 1), dice.range(-63, 63)) } else { (23637, e - 2) };
    let y = TensorType::new(EXP_BITS, EXP_EXPONENT, &dims)?;
    let operands = vec![dice.tensor(&a)?, dice.tensor(&max)?, table];
    let causal = causal(dice, &dims);
    Ok(build(Opcode::ExpNeg, operands, vec![multiplier, input_shift, causal], y))
}

fn row_sum(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, e, shift) = (reduced_shape(dice, size), exponent(dice), shift(dice));
    let a = ty(dice, (2, 50), e, &dims)?;
    let reduced = parts(dice, &a);
    let y = ty(dice, (2, 64), e - shift, &reduced)?;
    Ok(build(Opcode::RowSum, vec![dice.tensor(&a)?], vec![shift], y))
}

fn normalize(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, ep, ez) = (shape(dice, size), exponent(dice), exponent(dice));
    let p = ty(dice, (2, 30), ep, &dims)?;
    let z = ty(dice, (2, 61), ez, &per_row(&dims))?;
    let bits = dice.range(0, (60 - i64::from(p.bits())).min(32));
    let y = ty(dice, (2, 64), ep - ez + bits, &dims)?;
    Ok(build(Opcode::Normalize, vec![dice.tensor(&p)?, dice.tensor(&z)?], vec![bits], y))
}

fn one_hot_sub(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, e, shift) = (shape(dice, size), exponent(dice), shift(dice));
    let p = ty(dice, (2, 60), e, &dims)?;
    let label = ty(dice, (5, 32), 0, &per_row(&dims))?;
    let classes = p.row() as i64;
    let labels: Vec<i64> = (0..label.elements()).map(|_| dice.range(-1, classes).min(label.limit())).collect();
    let y = ty(dice, (2, 64), e - shift, &dims)?;
    let one = dice.bits(40) as i64;
    let one = one >> dice.range(0, 40);
    Ok(build(Opcode::OneHotSub, vec![dice.tensor(&p)?, Tensor::from_wide(label, &labels)?], vec![one, shift], y))
}

fn sample(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (rows, batch, e) = (dim(dice, 50), dim(dice, size), exponent(dice));
    let width = dim(dice, size);
    let flat = dice.once_in(3);
    let dims = |rows| if flat { vec![rows] } else { vec![rows, width] };
    let data = ty(dice, (2, 64), e, &dims(rows))?;
    let y = TensorType::new(data.bits(), data.exponent(), &dims(batch))?;
    let last = (1i64 << 32) - i64::from(batch);
    let first_row = if dice.once_in(6) { last } else { dice.range(0, 10_000) };
    Ok(build(Opcode::Sample, vec![dice.tensor(&data)?], vec![first_row], y))
}
