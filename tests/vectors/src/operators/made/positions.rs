//! Rule N-29: elements turned by their token's position.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, constant, spread, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::Rope, rope)];

fn rope() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Rope;
    // Cosines and sines of 0, 1 and 2 times two angles: 1 and 1/100.
    let turns = [16384, 16384, 0, 0, 8852, 16383, 13787, 164, -6818, 16381, 14898, 328];
    let table = || tensor(16, 14, &[3, 4], &turns);
    let part = vec![spread(16, 9, &[3, 12], 7919)?, table()?];
    let whole = vec![spread(16, 9, &[2, 8], 7919)?, table()?];
    let limits = vec![tensor(16, 0, &[2, 2], &[32767, 32767, 32767, -32767])?, constant(16, 15, &[2, 2], 32767)?];
    let halves = vec![tensor(8, 1, &[1, 4], &[1, 3, 1, 3])?, tensor(8, 0, &[1, 2], &[1, 0])?];
    Ok(vec![
        ("two of six elements do not turn", case(op, part, &[2, 13], ty(16, 10, &[3, 12])?)?),
        ("whole heads, fewer tokens than turns", case(op, whole, &[2, 14], ty(17, 9, &[2, 8])?)?),
        ("limits of 16 bits", case(op, limits, &[1, 0], ty(32, 15, &[2, 2])?)?),
        ("halves go to even, exponent 0", case(op, halves, &[1, 1], ty(8, 0, &[1, 4])?)?),
    ])
}
