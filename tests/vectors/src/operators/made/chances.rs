//! Rules N-46 and N-48: elements dropped, and rounding drawn.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, at_step_of, case, spread, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::Dropout, dropout), (Opcode::Dither, dither)];

fn dropout() -> Result<Vec<Named>, CaseError> {
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

fn dither() -> Result<Vec<Named>, CaseError> {
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
