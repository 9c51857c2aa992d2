//! Rules N-42 to N-44, N-46 and N-48: an optimiser's steps, schedules, and what is drawn for each element.

use tensorlink_num::arbitrary::{Case, CaseError};
use tensorlink_types::Opcode;

use super::transformer::spread;
use super::{Named, case, tensor, ty};

pub(super) fn ratio() -> Result<Vec<Named>, CaseError> {
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

pub(super) fn shrink() -> Result<Vec<Named>, CaseError> {
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

pub(super) fn at_step() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::AtStep;
    let rows = |rows: u32| Ok::<_, CaseError>(vec![spread(24, 9, &[rows, 2], 7919)?]);
    let flat = || Ok::<_, CaseError>(vec![tensor(64, 9, &[9], &[1, 2, 3, 4, 5, 6, 7, i64::MAX, -i64::MAX])?]);
    Ok(vec![
        ("the row of the step", case(op, rows(9)?, &[], ty(24, 9, &[2])?)?),
        ("the last row at its step", case(op, rows(8)?, &[], ty(24, 9, &[2])?)?),
        ("the last row from then on", case(op, rows(7)?, &[], ty(24, 9, &[2])?)?),
        ("one element a row", case(op, flat()?, &[], ty(64, 9, &[1])?)?),
        ("the first step", at_step_of(0, case(op, flat()?, &[], ty(64, 9, &[1])?)?)),
        ("the largest step", at_step_of(u32::MAX, case(op, flat()?, &[], ty(64, 9, &[1])?)?)),
    ])
}

/// The case at another step.
fn at_step_of(step: u32, mut case: Case) -> Case {
    case.context.step = step;
    case
}

pub(super) fn dropout() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Dropout;
    let a = || Ok::<_, CaseError>(vec![spread(16, 8, &[4, 6], 7919)?]);
    let wide = vec![tensor(62, 0, &[3], &[(1 << 61) - 1, 1 - (1 << 61), 1])?];
    let halves = vec![tensor(8, 0, &[4], &[1, 3, -1, -3])?];
    let (whole, word) = (1 << 32, i64::from(u32::MAX));
    let y = || ty(17, 8, &[4, 6]);
    Ok(vec![
        ("half of all, doubled", case(op, a()?, &[1 << 31, 0, 2, 0], y()?)?),
        ("half of all in another stream", case(op, a()?, &[1 << 31, 1, 2, 0], y()?)?),
        ("the largest stream", case(op, a()?, &[3 << 30, word, 4, 0], y()?)?),
        ("the largest step", at_step_of(u32::MAX, case(op, a()?, &[1 << 31, 7, 2, 0], y()?)?)),
        ("all dropped but where the draw is 0", case(op, a()?, &[1, 5, 1, 0], y()?)?),
        ("none dropped, halves go to even", case(op, halves, &[whole, 5, 1, 1], ty(8, 0, &[4])?)?),
        ("wide mantissas, saturating", case(op, wide, &[whole, 0, -1, -3], ty(62, 0, &[3])?)?),
    ])
}

pub(super) fn dither() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Dither;
    let p = [1, 3, -1, -3, 5, 7, 10, -10, 0, 16_777_216, 5, -5, 33_554_431, -33_554_431, 1];
    let z = [2, 7, 16_777_216, 0, -9];
    let operands = || Ok::<_, CaseError>(vec![tensor(26, 24, &[5, 3], &p)?, tensor(30, 24, &[5], &z)?]);
    let same = vec![tensor(16, 0, &[2, 40], &[[1; 40], [-1; 40]].concat())?, tensor(16, 0, &[2, 1], &[3, 3])?];
    let top = (1 << 29) - 1;
    let wide = vec![tensor(30, 0, &[1, 6], &[top, -top, 1, -1, top - 1, 0])?, tensor(30, 0, &[1], &[top])?];
    Ok(vec![
        ("whole numbers, bad sums count as one", case(op, operands()?, &[0, 0], ty(16, 0, &[5, 3])?)?),
        ("fifteen places, clamped", case(op, operands()?, &[15, 3], ty(16, 15, &[5, 3])?)?),
        ("a third, up or down", case(op, same, &[0, u32::MAX.into()], ty(2, 0, &[2, 40])?)?),
        ("most places, largest divisor", case(op, wide, &[32, 9], ty(40, 32, &[1, 6])?)?),
    ])
}
