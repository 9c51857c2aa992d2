//! Rules N-11, N-12 and N-25: products of matrices, and matrices turned.

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, constant, spread, tensor, ty};

pub(super) const MADE: Made =
    &[(Opcode::MatMul, mat_mul), (Opcode::ScaledMatMul, scaled_mat_mul), (Opcode::Transpose, transpose)];

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

fn scaled_mat_mul() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::ScaledMatMul;
    let plain = || -> Result<Vec<Tensor>, CaseError> {
        let scales = [tensor(16, 10, &[3], &[1, 32767, -2])?, tensor(16, 12, &[2], &[1024, -3])?];
        let factors = vec![spread(8, 0, &[3, 7], 37)?, spread(8, 7, &[2, 4], 91)?];
        Ok(factors.into_iter().chain(scales).collect())
    };
    let halves = vec![
        tensor(8, 0, &[3, 1], &[1, 3, -5])?,
        tensor(8, 0, &[1, 1], &[1])?,
        constant(8, 0, &[3], 1)?,
        constant(8, 1, &[1], 1)?,
    ];
    let wide = vec![
        spread(16, 8, &[2, 9], 7919)?,
        spread(9, 7, &[2, 9], 101)?,
        tensor(8, 6, &[2], &[127, -127])?,
        tensor(12, 0, &[2], &[2047, 0])?,
    ];
    let mixed = vec![
        spread(16, 8, &[2, 35], 7919)?,
        spread(8, 7, &[3, 33], 101)?,
        tensor(8, 6, &[2], &[127, -127])?,
        tensor(12, 0, &[3], &[2047, 0, -1])?,
    ];
    let long = vec![
        constant(8, 0, &[1, 4098], 127)?,
        constant(8, 0, &[1, 4096], -127)?,
        constant(19, 0, &[1], 262_143)?,
        constant(19, 0, &[1], 262_143)?,
    ];
    Ok(vec![
        ("the first part of each row", case(op, plain()?, &[0, 20], ty(16, 9, &[3, 2])?)?),
        ("the last part of each row", case(op, plain()?, &[3, 20], ty(16, 9, &[3, 2])?)?),
        ("halves go to even", case(op, halves, &[0, 1], ty(8, 0, &[3, 1])?)?),
        ("int16, whole rows of odd length", case(op, wide, &[0, 12], ty(32, 9, &[2, 2])?)?),
        ("int16 by int8", case(op, mixed, &[2, 13], ty(32, 8, &[2, 3])?)?),
        ("longest part, near 2^62", case(op, long, &[1, -1], ty(64, 1, &[1, 1])?)?),
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
