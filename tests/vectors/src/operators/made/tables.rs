//! Rules N-18 and N-20: functions given by tables.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_num::tables::exp2_table;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::Lookup, lookup), (Opcode::ExpNeg, exp_neg)];

fn lookup() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Lookup;
    // Four cells of 16 units from −32 on.
    let x = [-32767, -33, -32, -31, -17, -16, 0, 15, 16, 31, 32, 33, 32767];
    let wide = vec![tensor(16, 4, &[13], &x)?, tensor(16, 8, &[5], &[0, 100, -200, 300, 32767])?];
    let one_cell = vec![tensor(8, 4, &[5], &[-1, 0, 1, 2, 3])?, tensor(32, 30, &[2], &[-(1 << 30), 1 << 30])?];
    let shifted = vec![tensor(8, 4, &[4], &[-127, 1, 3, 127])?, tensor(8, 6, &[3], &[127, 0, -127])?];
    Ok(vec![
        ("every cell, both ends and beyond", case(op, wide, &[0, -32, 4, 4], ty(16, 8, &[13])?)?),
        ("one cell of two units", case(op, one_cell, &[0, 0, 1, 1], ty(32, 30, &[5])?)?),
        ("input rescaled half to even", case(op, shifted, &[1, -2, 2, 0], ty(16, 8, &[4])?)?),
    ])
}

fn exp_neg() -> Result<Vec<Named>, CaseError> {
    // Eight fraction bits: s = 8 − 2.
    let a = [0, 1, -1, -256, -32767, 32767, -177, -178, -5000, -6400, -7097, -7100];
    let operands = vec![tensor(16, 8, &[2, 6], &a)?, tensor(16, 8, &[2], &[0, -177])?, exp2_table()?];
    let output = ty(26, 24, &[2, 6])?;
    let causal = vec![tensor(8, 4, &[2, 3, 2], &a.map(|a| a % 128))?, tensor(8, 4, &[6], &[0; 6])?, exp2_table()?];
    let seen = ty(26, 24, &[2, 3, 2])?;
    Ok(vec![
        ("at, above and far below the maximum", case(Opcode::ExpNeg, operands, &[23637, 6, 0], output)?),
        ("causal, two heads of three tokens", case(Opcode::ExpNeg, causal, &[23637, 2, 1], seen)?),
    ])
}
