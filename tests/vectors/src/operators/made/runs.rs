//! Rules N-38 and N-39: elements combined with one that stands for a run of them.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, spread, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::RowCombine, row_combine), (Opcode::RowMul, row_mul)];

fn row_combine() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowCombine;
    let each = vec![tensor(16, 8, &[2, 3], &[100, 200, 300, -100, -200, -300])?, tensor(8, 8, &[2], &[127, -127])?];
    let matrices = vec![spread(8, 3, &[2, 2, 3], 37)?, tensor(8, 3, &[2, 1], &[100, -100])?];
    let all = vec![tensor(8, 0, &[3], &[1, 3, -1])?, tensor(8, 0, &[1], &[2])?];
    let own = vec![tensor(16, 0, &[3], &[32767, -32767, 1])?, tensor(16, 0, &[3], &[32767, -32767, 2])?];
    let large = (1 << 40) - 1;
    Ok(vec![
        ("one element for each row", case(op, each, &[1, -1, 0], ty(10, 8, &[2, 3])?)?),
        ("one element for each of two matrices", case(op, matrices, &[3, 1, 2], ty(8, 3, &[2, 2, 3])?)?),
        ("one element for all, halves go to even", case(op, all, &[1, 2, 1], ty(8, 0, &[3])?)?),
        ("an element each, largest coefficients cancel", case(op, own, &[large, -large, 40], ty(16, 0, &[3])?)?),
    ])
}

fn row_mul() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowMul;
    let each = vec![tensor(16, 8, &[2, 3], &[32767, -32767, 5, 3, 1, -1])?, tensor(16, 8, &[2], &[32767, 128])?];
    let matrices = vec![spread(8, 3, &[2, 2, 3], 37)?, tensor(8, 3, &[2], &[3, -127])?];
    let word = i64::from(i32::MAX);
    let all = vec![tensor(32, 16, &[2], &[word, -7])?, tensor(32, 16, &[1], &[-word])?];
    Ok(vec![
        ("one element for each row, halves go to even", case(op, each, &[8], ty(16, 8, &[2, 3])?)?),
        ("one element for each of two matrices", case(op, matrices, &[2], ty(12, 4, &[2, 2, 3])?)?),
        ("by one element, near 2^62", case(op, all, &[-1], ty(64, 33, &[2])?)?),
    ])
}
