//! Cases made by hand for the corners of each rule.

mod optimizer;
mod sampling;
mod shifted;
mod training;
mod transformer;

use tensorlink_num::arbitrary::{Case, CaseError};
use tensorlink_num::tables::exp2_table;
use tensorlink_num::{StepContext, Tensor, check_operator};
use tensorlink_types::{B256, JobKey, Opcode, Operand, Operator, Source, TensorType};

/// A case and what it is about.
type Named = (&'static str, Case);

/// Made cases of an opcode, at least one.
pub(super) fn cases(opcode: Opcode) -> Result<Vec<Named>, CaseError> {
    match opcode {
        Opcode::MatMul => mat_mul(),
        Opcode::Transpose => transpose(),
        Opcode::Combine => combine(),
        Opcode::Scale => scale(),
        Opcode::Mul => mul(),
        Opcode::Relu => relu(),
        Opcode::ReluGrad => relu_grad(),
        Opcode::Lookup => lookup(),
        Opcode::RowMax => row_max(),
        Opcode::ExpNeg => exp_neg(),
        Opcode::RowSum => row_sum(),
        Opcode::Normalize => normalize(),
        Opcode::OneHotSub => one_hot_sub(),
        Opcode::Sample => sample(),
        Opcode::ScaledMatMul => transformer::scaled_mat_mul(),
        Opcode::HeadScores => transformer::head_scores(),
        Opcode::HeadMix => transformer::head_mix(),
        Opcode::Norm => transformer::norm(),
        Opcode::Rope => transformer::rope(),
        Opcode::Gather => transformer::gather(),
        Opcode::RowAbsMax => row_abs_max(),
        Opcode::RowArgMax => sampling::row_arg_max(),
        Opcode::RowPick => sampling::row_pick(),
        Opcode::TailSum => sampling::tail_sum(),
        Opcode::Threshold => sampling::threshold(),
        Opcode::Perturb => sampling::perturb(),
        Opcode::Choose => sampling::choose(),
        Opcode::RowCombine => training::row_combine(),
        Opcode::RowMul => training::row_mul(),
        Opcode::InverseNorm => training::inverse_norm(),
        Opcode::GatherGrad => training::gather_grad(),
        Opcode::Ratio => optimizer::ratio(),
        Opcode::Shrink => optimizer::shrink(),
        Opcode::AtStep => optimizer::at_step(),
        Opcode::GroupSum => training::group_sum(),
        Opcode::Dropout => optimizer::dropout(),
        Opcode::Slice => training::slice(),
        Opcode::Dither => optimizer::dither(),
        Opcode::RowShift => shifted::row_shift(),
        Opcode::ShiftRows => shifted::shift_rows(),
        Opcode::ShiftedMatMul => shifted::shifted_mat_mul(),
    }
}

fn ty(bits: u8, exponent: i16, dims: &[u32]) -> Result<TensorType, CaseError> {
    Ok(TensorType::new(bits, exponent, dims)?)
}

fn tensor(bits: u8, exponent: i16, dims: &[u32], values: &[i64]) -> Result<Tensor, CaseError> {
    Ok(Tensor::from_wide(ty(bits, exponent, dims)?, values)?)
}

fn case(opcode: Opcode, operands: Vec<Tensor>, attributes: &[i64], output: TensorType) -> Result<Case, CaseError> {
    let named = (0u32..).zip(&operands).map(|(i, t)| Operand { source: Source::State(i), ty: t.ty().clone() });
    let operator = Operator { opcode, operands: named.collect(), attributes: attributes.to_vec(), output };
    check_operator(&operator)?;
    let context = StepContext { job_key: JobKey(B256::repeat_byte(0x5a)), step: 7 };
    Ok(Case { operator, operands, context })
}

fn mat_mul() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::MatMul;
    let halves = vec![tensor(8, 3, &[6, 1], &[1, 3, 5, -1, -3, -5])?, tensor(8, 2, &[1, 1], &[1])?];
    let full = vec![tensor(8, 0, &[1, 2], &[127, 127])?, tensor(8, 0, &[2, 2], &[127, 127, -127, -127])?];
    let ramp: Vec<i64> = (0..4096).map(|k| (k * 37 + 11) % 255 - 127).collect();
    let ends: Vec<i64> = vec![127; 4096].into_iter().chain(vec![-127; 4096]).collect();
    let long = vec![tensor(8, 7, &[2, 4096], &ends)?, tensor(8, 7, &[1, 4096], &ramp)?];
    let wide = vec![
        tensor(16, 15, &[2, 5], &[32767, -32767, 1, 0, -1, 32767, 32767, 32767, 32767, 32767])?,
        tensor(9, 8, &[3, 5], &[255, -255, 1, 2, 3, 255, 255, 255, 255, 255, -255, 0, 0, 0, 77])?,
    ];
    Ok(vec![
        ("halves go to even", case(op, halves, &[1], ty(8, 4, &[6, 1])?)?),
        ("saturates at both ends", case(op, full, &[-2], ty(16, 2, &[1, 2])?)?),
        ("longest int8 dot product", case(op, long, &[6], ty(16, 8, &[2, 1])?)?),
        ("int16, rows of odd length", case(op, wide, &[10], ty(16, 13, &[2, 3])?)?),
    ])
}

fn transpose() -> Result<Vec<Named>, CaseError> {
    let a = vec![tensor(12, 3, &[2, 3], &[1, 2, 3, -2047, 2047, 0])?];
    let batch: Vec<i64> = (1..=12).collect();
    let batch = vec![tensor(12, 3, &[2, 3, 2], &batch)?];
    Ok(vec![
        ("two by three", case(Opcode::Transpose, a, &[], ty(12, 3, &[3, 2])?)?),
        ("two matrices of three by two", case(Opcode::Transpose, batch, &[], ty(12, 3, &[2, 2, 3])?)?),
    ])
}

fn combine() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Combine;
    let bias = vec![tensor(16, 8, &[2, 3], &[100, 200, 300, -100, -200, -300])?, tensor(8, 8, &[3], &[1, -2, 127])?];
    let momentum = vec![tensor(24, 20, &[4], &[8388607, -8388607, 3, -3])?, tensor(8, 7, &[4], &[127, -127, 1, -1])?];
    let large = (1 << 40) - 1;
    let cancel = vec![tensor(16, 0, &[3], &[32767, -32767, 1])?, tensor(16, 0, &[1], &[32767])?];
    Ok(vec![
        ("bias repeated along rows", case(op, bias, &[1, 1, 0], ty(8, 8, &[2, 3])?)?),
        ("decay and add with half to even", case(op, momentum, &[230, 8192, 8], ty(24, 20, &[4])?)?),
        ("largest coefficients cancel", case(op, cancel, &[large, -large, 41], ty(16, 0, &[3])?)?),
    ])
}

fn scale() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Scale;
    let a = || tensor(8, 4, &[5], &[127, -127, 0, 3, -3]);
    Ok(vec![
        ("negates", case(op, vec![a()?], &[-1, 0], ty(8, 4, &[5])?)?),
        ("halves go to even", case(op, vec![a()?], &[1, 1], ty(8, 3, &[5])?)?),
        ("shifts left into the clamp", case(op, vec![a()?], &[1, -63], ty(64, 67, &[5])?)?),
        ("a shift of 63 leaves zero", case(op, vec![a()?], &[1 << 39, 63], ty(8, 0, &[5])?)?),
    ])
}

fn mul() -> Result<Vec<Named>, CaseError> {
    let a = vec![tensor(16, 8, &[2, 3], &[32767, -32767, 5, 3, 1, -1])?, tensor(16, 8, &[3], &[32767, 32767, 128])?];
    let scalar =
        vec![tensor(32, 16, &[2], &[i64::from(i32::MAX), -7])?, tensor(32, 16, &[1], &[-i64::from(i32::MAX)])?];
    Ok(vec![
        ("row repeated, halves go to even", case(Opcode::Mul, a, &[8], ty(16, 8, &[2, 3])?)?),
        ("by one element, near 2^62", case(Opcode::Mul, scalar, &[-1], ty(64, 33, &[2])?)?),
    ])
}

fn relu() -> Result<Vec<Named>, CaseError> {
    let a = vec![tensor(32, 9, &[4], &[i64::from(i32::MAX), -i64::from(i32::MAX), 0, -1])?];
    Ok(vec![("both signs and zero", case(Opcode::Relu, a, &[], ty(32, 9, &[4])?)?)])
}

fn relu_grad() -> Result<Vec<Named>, CaseError> {
    let operands = vec![tensor(16, 3, &[4], &[9, 8, -7, 6])?, tensor(8, 9, &[4], &[1, 0, 127, -1])?];
    Ok(vec![("zero has no gradient", case(Opcode::ReluGrad, operands, &[], ty(16, 3, &[4])?)?)])
}

fn lookup() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Lookup;
    // Four cells of 16 units from −32 on.
    let x = [-32767, -33, -32, -31, -17, -16, 0, 15, 16, 31, 32, 33, 32767];
    let wide = vec![tensor(16, 4, &[13], &x)?, tensor(16, 8, &[5], &[0, 100, -200, 300, 32767])?];
    let one_cell = vec![tensor(8, 4, &[5], &[-1, 0, 1, 2, 3])?, tensor(32, 30, &[2], &[-(1 << 30), 1 << 30])?];
    let shifted = vec![tensor(8, 4, &[4], &[-127, 1, 3, 127])?, tensor(8, 6, &[3], &[127, 0, -127])?];
    Ok(vec![
        ("every cell, both ends and beyond", case(op, wide, &[0, -32, 4, 4], ty(16, 8, &[13])?)?),
        ("one cell of two units", case(op, one_cell, &[0, 0, 1, 1], ty(32, 30, &[5])?)?),
        ("input rescaled half to even", case(op, shifted, &[1, -2, 2, 0], ty(16, 8, &[4])?)?),
    ])
}

fn row_max() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowMax;
    let negative = vec![tensor(8, 1, &[2, 3], &[-5, -3, -127, 7, 127, 127])?];
    let mut long = vec![-100i64; 4096];
    if let Some(last) = long.last_mut() {
        *last = -99;
    }
    let long = vec![tensor(8, 1, &[1, 4096], &long)?];
    // The largest elements are those a row must not see.
    let heads = [-9, 8, 127, -9, -10, 127, 1, 2, 3, 4, 127, 127, -127, -126, 5, 0, -1, 1];
    let heads = vec![tensor(8, 1, &[2, 3, 3], &heads)?];
    let narrow = vec![tensor(16, 1, &[3, 2], &[-32767, 32767, 1, 2, 3, 4])?];
    let parts = || tensor(8, 1, &[2, 6], &[-5, -3, -127, 7, 127, 127, 1, 2, 3, -9, -8, -7]);
    Ok(vec![
        ("negative row and tie", case(op, negative, &[0], ty(8, 1, &[2])?)?),
        ("three parts of each row", case(op, vec![parts()?], &[0], ty(8, 1, &[2, 3])?)?),
        ("parts of one element", case(op, vec![parts()?], &[0], ty(8, 1, &[12])?)?),
        ("longest row, maximum last", case(op, long, &[0], ty(8, 1, &[1])?)?),
        ("causal, two heads of three tokens", case(op, heads, &[1], ty(8, 1, &[2, 3])?)?),
        ("causal, more tokens than elements", case(op, narrow, &[1], ty(16, 1, &[3])?)?),
    ])
}

fn row_abs_max() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowAbsMax;
    let signs = vec![tensor(8, 1, &[4, 3], &[-5, 3, 4, 5, -3, 4, 0, 0, 0, 127, -127, 1])?];
    let mut long = vec![1i64; 4096];
    if let Some(last) = long.last_mut() {
        *last = -127;
    }
    let long = vec![tensor(8, 1, &[1, 4096], &long)?];
    let limit = vec![tensor(64, 1, &[2, 1], &[-i64::MAX, i64::MAX])?];
    Ok(vec![
        ("both signs, zeros, tie", case(op, signs, &[], ty(8, 1, &[4])?)?),
        ("longest row, largest last", case(op, long, &[], ty(8, 1, &[1])?)?),
        ("both limits of 64 bits", case(op, limit, &[], ty(64, 1, &[2])?)?),
    ])
}

fn exp_neg() -> Result<Vec<Named>, CaseError> {
    // Eight fraction bits: s = 8 − 2.
    let a = [0, 1, -1, -256, -32767, 32767, -177, -178, -5000, -6400, -7097, -7100];
    let operands = vec![tensor(16, 8, &[2, 6], &a)?, tensor(16, 8, &[2], &[0, -177])?, exp2_table()?];
    let output = ty(26, 24, &[2, 6])?;
    let causal = vec![tensor(8, 4, &[2, 3, 2], &a.map(|a| a % 128))?, tensor(8, 4, &[6], &[0; 6])?, exp2_table()?];
    let seen = ty(26, 24, &[2, 3, 2])?;
    Ok(vec![
        ("at, above and far below the maximum", case(Opcode::ExpNeg, operands, &[23637, 6, 0], output)?),
        ("causal, two heads of three tokens", case(Opcode::ExpNeg, causal, &[23637, 2, 1], seen)?),
    ])
}

fn row_sum() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowSum;
    let long: Vec<i64> = vec![127; 4096];
    let long = vec![tensor(8, 7, &[1, 4096], &long)?];
    let halves = vec![tensor(8, 7, &[4, 2], &[1, 0, 1, 2, -1, 0, -1, -2])?];
    let parts = || tensor(8, 7, &[2, 6], &[1, 2, 3, 4, 5, 6, -127, -127, 127, 127, -1, 0]);
    Ok(vec![
        ("two parts of each row", case(op, vec![parts()?], &[0], ty(9, 7, &[2, 2])?)?),
        ("parts of one element, halves go to even", case(op, vec![parts()?], &[1], ty(8, 6, &[12])?)?),
        ("longest row saturates", case(op, long, &[0], ty(16, 7, &[1])?)?),
        ("halves go to even", case(op, halves, &[1], ty(8, 6, &[4])?)?),
    ])
}

fn normalize() -> Result<Vec<Named>, CaseError> {
    let operands = vec![
        tensor(26, 24, &[5, 2], &[1, 3, -1, -3, 16777216, 0, 5, -5, 33554431, -33554431])?,
        tensor(38, 24, &[5], &[2, 2, 16777216, 0, -9])?,
    ];
    let plain = vec![operands.first().cloned(), operands.get(1).cloned()].into_iter().flatten().collect();
    Ok(vec![
        ("halves go up, bad sums count as one", case(Opcode::Normalize, plain, &[0], ty(16, 0, &[5, 2])?)?),
        ("fifteen bits, clamped", case(Opcode::Normalize, operands, &[15], ty(16, 15, &[5, 2])?)?),
    ])
}

fn one_hot_sub() -> Result<Vec<Named>, CaseError> {
    let p = [10, 20, 30, 40, 50, 60, 70, 80, 90, 1, 2, 3];
    let operands = vec![tensor(16, 15, &[4, 3], &p)?, tensor(8, 0, &[4], &[0, 2, 3, -1])?];
    let output = ty(16, 13, &[4, 3])?;
    Ok(vec![("labels first, last and outside", case(Opcode::OneHotSub, operands, &[32767, 2], output)?)])
}

fn sample() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Sample;
    let features: Vec<i64> = (0..33).collect();
    let features = vec![tensor(8, 7, &[11, 3], &features)?];
    let labels: Vec<i64> = (0..11).collect();
    let labels = || Ok::<_, CaseError>(vec![tensor(8, 0, &[11], &labels)?]);
    let last = (1 << 32) - 4;
    Ok(vec![
        ("rows of features", case(op, features, &[40], ty(8, 7, &[5, 3])?)?),
        ("labels of the same rows", case(op, labels()?, &[40], ty(8, 0, &[5])?)?),
        ("largest row number", case(op, labels()?, &[last], ty(8, 0, &[4])?)?),
    ])
}
