//! Rules N-44 and N-47: elements that are only moved.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, at_step_of, case, spread, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::AtStep, at_step), (Opcode::Slice, slice)];

fn at_step() -> Result<Vec<Named>, CaseError> {
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

fn slice() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Slice;
    let a = || Ok::<_, CaseError>(vec![spread(12, 3, &[3, 5], 101)?]);
    let limits = vec![tensor(64, 0, &[1, 2], &[i64::MAX, -i64::MAX])?];
    Ok(vec![
        ("first columns", case(op, a()?, &[0], ty(12, 3, &[3, 2])?)?),
        ("last columns", case(op, a()?, &[2], ty(12, 3, &[3, 3])?)?),
        ("all columns", case(op, a()?, &[0], ty(12, 3, &[3, 5])?)?),
        ("limit of 64 bits", case(op, limits, &[1], ty(64, 0, &[1, 1])?)?),
    ])
}
