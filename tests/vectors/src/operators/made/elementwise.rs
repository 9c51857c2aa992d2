//! Rules N-13 to N-17: elements combined with others in the same place, or with a vector that repeats.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, tensor, ty};

pub(super) const MADE: Made = &[
    (Opcode::Combine, combine),
    (Opcode::Scale, scale),
    (Opcode::Mul, mul),
    (Opcode::Relu, relu),
    (Opcode::ReluGrad, relu_grad),
];

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
