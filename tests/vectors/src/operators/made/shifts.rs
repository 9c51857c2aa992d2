//! Rules N-49 to N-51: rows shifted by places of their own, and products of them.

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, constant, spread, tensor, ty};

pub(super) const MADE: Made =
    &[(Opcode::RowShift, row_shift), (Opcode::ShiftRows, shift_rows), (Opcode::ShiftedMatMul, shifted_mat_mul)];

fn row_shift() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowShift;
    let top = (1 << 23) - 1;
    let rows = [0, 0, 0, 127, -3, 1, 128, -3, 5, -255, 255, 1, -256, 6, 10, top, 7, -top];
    let a = || Ok::<_, CaseError>(vec![tensor(24, 5, &[6, 3], &rows)?]);
    let widest = vec![tensor(64, 0, &[1, 2], &[1, -i64::MAX])?];
    let parts = vec![spread(24, 0, &[2, 12], 7919)?];
    let long = vec![constant(16, 0, &[1, 8192], -300)?];
    Ok(vec![
        ("to 8 bits, each power of two", case(op, a()?, &[8], ty(8, 0, &[6])?)?),
        ("to 16 bits", case(op, a()?, &[16], ty(8, 0, &[6])?)?),
        ("to as many as there are", case(op, a()?, &[24], ty(8, 0, &[6])?)?),
        ("the largest shift", case(op, widest, &[2], ty(8, 0, &[1])?)?),
        ("four parts a row", case(op, parts, &[9], ty(20, 0, &[2, 4])?)?),
        ("the longest parts", case(op, long, &[8], ty(8, 0, &[1, 2])?)?),
    ])
}

fn shift_rows() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::ShiftRows;
    let halves = vec![tensor(24, 5, &[2, 4], &[1, 3, 5, 255, -1, -6, -10, -510])?, tensor(8, 0, &[2], &[1, 2])?];
    let far = vec![spread(32, 0, &[5, 3], 1_000_003)?, tensor(64, 0, &[5], &[-1, 31, 32, i64::MAX, -i64::MAX])?];
    let wide = vec![tensor(62, -3, &[1, 3], &[(1 << 61) - 1, 1 - (1 << 61), 1 << 30])?, tensor(6, 0, &[1], &[31])?];
    Ok(vec![
        ("halves go to even, and what is too large to the limit", case(op, halves, &[], ty(8, 5, &[2, 4])?)?),
        ("numbers that are no shift", case(op, far, &[], ty(32, 0, &[5, 3])?)?),
        ("wide mantissas", case(op, wide, &[], ty(40, -3, &[1, 3])?)?),
    ])
}

fn shifted_mat_mul() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::ShiftedMatMul;
    let mixed = |offset: i64| -> Result<_, CaseError> {
        let factors = vec![spread(16, 8, &[4, 35], 7919)?, spread(8, 7, &[3, 33], 101)?];
        let rows = [tensor(8, 0, &[4], &[0, 9, -1, 32])?, tensor(18, 12, &[3], &[131_071, 0, -5])?];
        let operands: Vec<Tensor> = factors.into_iter().chain(rows).collect();
        case(op, operands, &[offset, 17], ty(24, 10, &[4, 3])?)
    };
    let words = vec![
        spread(16, 3, &[2, 9], 7919)?,
        spread(16, 4, &[2, 9], 104_729)?,
        tensor(6, 0, &[2], &[3, 31])?,
        constant(18, 0, &[2], 99_999)?,
    ];
    let halves = vec![
        tensor(8, 0, &[3, 1], &[1, 3, -5])?,
        tensor(8, 0, &[1, 1], &[1])?,
        tensor(8, 0, &[3], &[0, 1, 0])?,
        constant(8, 1, &[1], 1)?,
    ];
    let long = vec![
        constant(16, 0, &[1, 4098], 32_767)?,
        constant(16, 0, &[1, 4096], -32_767)?,
        constant(64, 0, &[1], i64::MAX)?,
        constant(21, 0, &[1], (1 << 20) - 1)?,
    ];
    Ok(vec![
        ("int16 by int8, the first part of each row", mixed(0)?),
        ("int16 by int8, the last part of each row", mixed(2)?),
        ("int16 by int16, rows of odd length", case(op, words, &[0, 20], ty(32, -13, &[2, 2])?)?),
        ("halves go to even", case(op, halves, &[0, 1], ty(8, 0, &[3, 1])?)?),
        ("longest part, near 2^62, least shift", case(op, long, &[1, -32], ty(64, 32, &[1, 1])?)?),
    ])
}
