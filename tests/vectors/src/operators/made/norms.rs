//! Rules N-28 and N-40: rows divided by their spread, and what they are divided by.

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, constant, spread, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::Norm, norm), (Opcode::InverseNorm, inverse_norm)];

fn norm() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Norm;
    // Rows: spread, zero, constant, one element alone, the limits with both signs.
    let x = [
        [100, -200, 300, -400, 500],
        [0, 0, 0, 0, 0],
        [7, 7, 7, 7, 7],
        [0, 0, 0, 0, -1],
        [32767, -32767, 32767, -32767, 32767],
    ];
    let operands = || -> Result<Vec<Tensor>, CaseError> {
        let gain = tensor(16, 12, &[5], &[9159, -9159, 1, 0, 32767])?;
        let bias = tensor(16, 10, &[5], &[0, 1, -1, 2000, -2000])?;
        Ok(vec![tensor(16, 9, &[5, 5], x.as_flattened())?, gain, bias])
    };
    let largest = (1 << 60) - 1;
    let y = || ty(16, 11, &[5, 5]);
    let single = vec![tensor(8, 0, &[3, 1], &[127, -1, 0])?, constant(8, 6, &[1], 64)?, constant(8, -14, &[1], 127)?];
    let long = vec![constant(8, 0, &[1, 1024], -127)?, constant(8, 7, &[1024], 127)?, constant(2, 0, &[1024], 0)?];
    // A massive activation, and what lies beside it.
    let top = (1 << 23) - 1;
    let beside = [top, -3, 700, 5, 0, 1, -1, 2, -2, 0, top, -top, top, -top, top];
    let wide = |bits: u8| -> Result<Vec<Tensor>, CaseError> {
        let x = beside.map(|x: i64| x / (1 << (24 - bits)));
        let vectors =
            [tensor(16, 12, &[5], &[9159, -9159, 1, 0, 32767])?, tensor(16, 10, &[5], &[0, 1, -1, 2000, -2000])?];
        Ok([tensor(bits, 9, &[3, 5], &x)?].into_iter().chain(vectors).collect())
    };
    let runs = vec![spread(16, 9, &[2, 6], 7919)?, tensor(16, 12, &[3], &[7094, 1, -7094])?, constant(8, 10, &[3], 3)?];
    Ok(vec![
        ("three elements of a row of six at a time", case(op, runs, &[1, 8053, 22, 21], ty(16, 11, &[2, 6])?)?),
        ("LayerNorm", case(op, operands()?, &[1, 13_422, 22, 21], y()?)?),
        ("RMSNorm", case(op, operands()?, &[0, 13_422, 22, 21], y()?)?),
        ("LayerNorm, least epsilon", case(op, operands()?, &[1, 1, 22, 21], y()?)?),
        ("RMSNorm, least epsilon", case(op, operands()?, &[0, 1, 22, 21], y()?)?),
        ("LayerNorm, largest epsilon", case(op, operands()?, &[1, largest, 22, 10], ty(32, 22, &[5, 5])?)?),
        ("rows of one element, largest shift of the bias", case(op, single, &[0, 256, 40, 20], ty(48, 6, &[3, 1])?)?),
        ("LayerNorm of 24 bits", case(op, wide(24)?, &[1, 9, 26, 21], ty(24, 15, &[3, 5])?)?),
        ("RMSNorm of 24 bits", case(op, wide(24)?, &[0, 9, 26, 21], ty(24, 15, &[3, 5])?)?),
        ("LayerNorm of 21 bits", case(op, wide(21)?, &[1, 9, 23, 21], ty(24, 12, &[3, 5])?)?),
        ("long row", case(op, long, &[0, 1, 27, 14], ty(8, 13, &[1, 1024])?)?),
    ])
}

fn inverse_norm() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::InverseNorm;
    // Rows: spread, zero, constant, one element alone, the limits with both signs.
    let x = [
        [100, -200, 300, -400, 500, -600],
        [0, 0, 0, 0, 0, 0],
        [7, 7, 7, 7, 7, 7],
        [0, 0, 0, 0, 0, -1],
        [32767, -32767, 32767, -32767, 32767, -32767],
    ];
    let x = || Ok::<_, CaseError>(vec![tensor(16, 9, &[5, 6], x.as_flattened())?]);
    let largest = (1 << 60) - 1;
    // Any bits of v, so that j is from 0 to 30 and both ends of the shift stay in reach.
    let bits: Vec<i64> = (0..15).map(|i| 1 << i).collect();
    let bits = || Ok::<_, CaseError>(vec![tensor(16, 0, &[15, 1], &bits)?]);
    let long = vec![constant(8, 0, &[1, 4096], -127)?];
    let limit = vec![constant(16, 0, &[1, 4096], 32767)?];
    let wide = vec![tensor(24, 9, &[2, 4], &[(1 << 23) - 1, -3, 700, 5, 0, 0, -1, 1])?];
    let widest = vec![constant(24, 0, &[1, 4096], 1 - (1 << 23))?];
    Ok(vec![
        ("of 24 bits", case(op, wide, &[1, 9, 20], ty(40, 25, &[2])?)?),
        ("longest row of 24 bits", case(op, widest, &[0, largest, 0], ty(32, 54, &[1])?)?),
        ("of LayerNorm", case(op, x()?, &[1, 13_422, 20], ty(40, 21, &[5])?)?),
        ("of RMSNorm, three parts of a row", case(op, x()?, &[0, 13_422, 20], ty(40, 21, &[5, 3])?)?),
        ("least epsilon", case(op, x()?, &[1, 1, 30], ty(40, 11, &[5])?)?),
        ("largest epsilon", case(op, x()?, &[0, largest, 0], ty(32, 41, &[5])?)?),
        ("each length of v", case(op, bits()?, &[0, 1, 25], ty(64, 25, &[15])?)?),
        ("least shift, saturating", case(op, bits()?, &[0, 1, -32], ty(64, 82, &[15])?)?),
        ("largest shift", case(op, bits()?, &[1, 1, 63], ty(2, -13, &[15])?)?),
        ("longest row", case(op, long, &[0, 1, 17], ty(30, 33, &[1])?)?),
        ("longest row, limits", case(op, limit, &[0, largest, 10], ty(30, 40, &[1])?)?),
    ])
}
