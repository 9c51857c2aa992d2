//! Rules N-19, N-21 and N-31: the largest of a row, and its sum.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::RowMax, row_max), (Opcode::RowAbsMax, row_abs_max), (Opcode::RowSum, row_sum)];

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
