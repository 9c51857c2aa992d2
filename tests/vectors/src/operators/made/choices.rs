//! Rules N-32, N-33 and N-37: places of elements, and elements at places.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, tensor, ty};

pub(super) const MADE: Made =
    &[(Opcode::RowArgMax, row_arg_max), (Opcode::RowPick, row_pick), (Opcode::Choose, choose)];

fn row_arg_max() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowArgMax;
    let ties = || tensor(8, 1, &[2, 6], &[-5, 3, 3, -127, 3, 2, -7, -9, -7, -9, 127, 127]);
    let mut long = vec![-32767i64; 4096];
    if let Some(last) = long.last_mut() {
        *last = -32766;
    }
    let long = vec![tensor(16, 1, &[1, 4096], &long)?];
    let limits = vec![tensor(64, 1, &[2, 2], &[-i64::MAX, i64::MAX, -i64::MAX, -i64::MAX])?];
    Ok(vec![
        ("the first of several", case(op, vec![ties()?], &[], ty(32, 0, &[2])?)?),
        ("three parts of each row", case(op, vec![ties()?], &[], ty(32, 0, &[2, 3])?)?),
        ("longest part, largest last", case(op, long, &[], ty(32, 0, &[1])?)?),
        ("limits of 64 bits", case(op, limits, &[], ty(32, 0, &[2])?)?),
    ])
}

fn row_pick() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowPick;
    let a = || tensor(16, 7, &[2, 6], &[1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 32767, -32767]);
    let inside = vec![a()?, tensor(8, 0, &[2], &[5, 4])?];
    let parts = vec![a()?, tensor(32, 0, &[2, 3], &[0, 1, 1, 0, 1, 0])?];
    let outside = vec![a()?, tensor(64, 0, &[2, 2], &[-1, 3, i64::MAX, -i64::MAX])?];
    Ok(vec![
        ("one of each row", case(op, inside, &[], ty(16, 7, &[2])?)?),
        ("one of each of three parts", case(op, parts, &[], ty(16, 7, &[2, 3])?)?),
        ("places outside", case(op, outside, &[], ty(16, 7, &[2, 2])?)?),
    ])
}

fn choose() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Choose;
    let row = |chosen: i64| [chosen, 0, 0, 0, 0, 0, 0];
    let controls = |bits, rows: &[[i64; 7]]| tensor(bits, 0, &[rows.len() as u32, 7], rows.as_flattened());
    let parts = vec![
        tensor(32, 0, &[4, 3], &[3, 7, 9, 3, 7, 9, 3, 7, 9, -4, -5, -6])?,
        tensor(16, 8, &[4, 3], &[-5, 8, 8, -9, -9, -10, 1, 2, 3, 4, 4, 5])?,
        controls(64, &[row(1), row(-1), row(0), row(i64::MAX)])?,
    ];
    let one = vec![
        tensor(40, 0, &[3, 1], &[(1 << 39) - 1, 1 - (1 << 39), 77])?,
        tensor(64, 0, &[3, 1], &[-i64::MAX, 0, i64::MAX])?,
        controls(2, &[row(1), row(1), row(1)])?,
    ];
    Ok(vec![
        ("the first of the largest parts, or none", case(op, parts, &[4096], ty(32, 0, &[4])?)?),
        ("one part, saturating", case(op, one, &[1], ty(32, 0, &[3])?)?),
    ])
}
