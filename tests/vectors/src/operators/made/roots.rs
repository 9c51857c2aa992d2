//! Rules N-42 and N-43: quotients by roots, for optimisers.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::Ratio, ratio), (Opcode::Shrink, shrink)];

fn ratio() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Ratio;
    let m = [1, -1, 3, -3, 5, 32767, -32767, 7, 7];
    let v = [0, 0, 1, 1, 3, 4, i64::MAX, -1, -i64::MAX];
    let operands = || Ok::<_, CaseError>(vec![tensor(16, 9, &[3, 3], &m)?, tensor(64, -4, &[3, 3], &v)?]);
    let squares = [9_223_372_030_926_249_000, 9_223_372_030_926_249_001, 9_223_372_036_854_775_806, 35, 36];
    let squares = vec![tensor(20, 0, &[5], &[524_287, 524_287, -524_287, 1, 1])?, tensor(64, 0, &[5], &squares)?];
    let fine = vec![tensor(21, 0, &[2], &[1 - (1 << 20), (1 << 20) - 1])?, tensor(32, 6, &[2], &[0, 1 << 30])?];
    let large = (1 << 40) - 1;
    Ok(vec![
        ("halves go up, roots of nothing and less are 0", case(op, operands()?, &[0, 2], ty(16, 11, &[3, 3])?)?),
        ("many places, least floor, saturating", case(op, operands()?, &[30, 1], ty(40, 41, &[3, 3])?)?),
        ("roots around squares", case(op, squares, &[40, 1], ty(64, 40, &[5])?)?),
        ("largest floor", case(op, fine, &[40, large], ty(24, 37, &[2])?)?),
    ])
}

fn shrink() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Shrink;
    // Norms of 0, 1, below, at, just above and far above 100.
    let s = [-5, 0, 1, 9_999, 10_000, 10_200, 10_201, 1_000_000, i64::MAX, -i64::MAX];
    let s = || Ok::<_, CaseError>(vec![tensor(64, -6, &[2, 5], &s)?]);
    Ok(vec![
        ("around a limit of 100", case(op, s()?, &[100, 16], ty(18, 16, &[2, 5])?)?),
        ("largest limit and places, saturating", case(op, s()?, &[i32::MAX.into(), 30], ty(31, 30, &[2, 5])?)?),
        ("least limit, whole numbers", case(op, s()?, &[1, 0], ty(2, 0, &[2, 5])?)?),
    ])
}
