//! Rule N-30: rows of a table chosen by ids.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, constant, spread, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::Gather, gather)];

fn gather() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Gather;
    let table = spread(8, 7, &[5, 3], 37)?;
    let scale = tensor(16, 12, &[5], &[1024, 32767, -1024, 1, 0])?;
    let ids = tensor(16, 0, &[6], &[4, 0, 2, 2, 1, 3])?;
    let inside = vec![table.clone(), scale.clone(), ids];
    let outside = vec![table, scale, tensor(64, 0, &[5], &[5, -1, i64::MAX, -i64::MAX, 1])?];
    let ranked = vec![
        spread(8, 7, &[5, 3], 37)?,
        tensor(16, 12, &[5], &[1024, 32767, -1024, 1, 0])?,
        tensor(8, 0, &[2, 1, 3], &[1, 4, 0, 3, 2, 2])?,
    ];
    let halves = vec![tensor(8, 0, &[2, 2], &[1, 3, -1, -3])?, constant(8, 0, &[2], 1)?, tensor(8, 0, &[2], &[1, 0])?];
    let longer = vec![tensor(8, 0, &[2, 1], &[3, 5])?, tensor(8, 0, &[3], &[7, 11, 13])?, tensor(8, 0, &[2], &[2, 0])?];
    let large = vec![
        tensor(32, 0, &[1, 2], &[i64::from(i32::MAX), -i64::from(i32::MAX)])?,
        tensor(32, 0, &[1], &[i64::from(i32::MAX)])?,
        tensor(2, 0, &[1], &[0])?,
    ];
    Ok(vec![
        ("rows by their ids", case(op, inside, &[9], ty(8, 10, &[6, 3])?)?),
        ("ids outside, the last not read", case(op, outside, &[9], ty(16, 10, &[4, 3])?)?),
        ("halves go to even", case(op, halves, &[1], ty(8, -1, &[2, 2])?)?),
        ("near 2^62", case(op, large, &[0], ty(64, 0, &[1, 2])?)?),
        ("ids of rank 2", case(op, ranked, &[9], ty(8, 10, &[4, 3])?)?),
        ("a scale longer than the table", case(op, longer, &[0], ty(16, 0, &[2, 1])?)?),
    ])
}
