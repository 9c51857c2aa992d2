//! Rules N-22 and N-23: shares of a row's sum, and their difference from a label.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::Normalize, normalize), (Opcode::OneHotSub, one_hot_sub)];

fn normalize() -> Result<Vec<Named>, CaseError> {
    let operands = vec![
        tensor(26, 24, &[5, 2], &[1, 3, -1, -3, 16777216, 0, 5, -5, 33554431, -33554431])?,
        tensor(38, 24, &[5], &[2, 2, 16777216, 0, -9])?,
    ];
    let plain = vec![operands.first().cloned(), operands.get(1).cloned()].into_iter().flatten().collect();
    Ok(vec![
        ("halves go up, bad sums count as one", case(Opcode::Normalize, plain, &[0], ty(16, 0, &[5, 2])?)?),
        ("fifteen bits, clamped", case(Opcode::Normalize, operands, &[15], ty(16, 15, &[5, 2])?)?),
    ])
}

fn one_hot_sub() -> Result<Vec<Named>, CaseError> {
    let p = [10, 20, 30, 40, 50, 60, 70, 80, 90, 1, 2, 3];
    let operands = vec![tensor(16, 15, &[4, 3], &p)?, tensor(8, 0, &[4], &[0, 2, 3, -1])?];
    let output = ty(16, 13, &[4, 3])?;
    Ok(vec![("labels first, last and outside", case(Opcode::OneHotSub, operands, &[32767, 2], output)?)])
}
