//! Rules N-25 to N-30.

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::{Named, case, tensor, ty};

/// As many numbers as the shape holds, spread over `±limit` by a stride.
pub(super) fn spread(bits: u8, exponent: i16, dims: &[u32], stride: i64) -> Result<Tensor, CaseError> {
    let ty = ty(bits, exponent, dims)?;
    let (limit, count) = (ty.limit(), ty.elements() as i64);
    let values: Vec<i64> = (1..=count).map(|i| (i * stride) % (2 * limit + 1) - limit).collect();
    Ok(Tensor::from_wide(ty, &values)?)
}

/// The same number everywhere.
pub(super) fn constant(bits: u8, exponent: i16, dims: &[u32], value: i64) -> Result<Tensor, CaseError> {
    let ty = ty(bits, exponent, dims)?;
    let values = vec![value; ty.elements() as usize];
    Ok(Tensor::from_wide(ty, &values)?)
}

pub(super) fn scaled_mat_mul() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::ScaledMatMul;
    let plain = || -> Result<Vec<Tensor>, CaseError> {
        let scales = [tensor(16, 10, &[3], &[1, 32767, -2])?, tensor(16, 12, &[2], &[1024, -3])?];
        let factors = vec![spread(8, 0, &[3, 7], 37)?, spread(8, 7, &[2, 4], 91)?];
        Ok(factors.into_iter().chain(scales).collect())
    };
    let halves = vec![
        tensor(8, 0, &[3, 1], &[1, 3, -5])?,
        tensor(8, 0, &[1, 1], &[1])?,
        constant(8, 0, &[3], 1)?,
        constant(8, 1, &[1], 1)?,
    ];
    let wide = vec![
        spread(16, 8, &[2, 9], 7919)?,
        spread(9, 7, &[2, 9], 101)?,
        tensor(8, 6, &[2], &[127, -127])?,
        tensor(12, 0, &[2], &[2047, 0])?,
    ];
    let mixed = vec![
        spread(16, 8, &[2, 35], 7919)?,
        spread(8, 7, &[3, 33], 101)?,
        tensor(8, 6, &[2], &[127, -127])?,
        tensor(12, 0, &[3], &[2047, 0, -1])?,
    ];
    let long = vec![
        constant(8, 0, &[1, 4098], 127)?,
        constant(8, 0, &[1, 4096], -127)?,
        constant(19, 0, &[1], 262_143)?,
        constant(19, 0, &[1], 262_143)?,
    ];
    Ok(vec![
        ("the first part of each row", case(op, plain()?, &[0, 20], ty(16, 9, &[3, 2])?)?),
        ("the last part of each row", case(op, plain()?, &[3, 20], ty(16, 9, &[3, 2])?)?),
        ("halves go to even", case(op, halves, &[0, 1], ty(8, 0, &[3, 1])?)?),
        ("int16, whole rows of odd length", case(op, wide, &[0, 12], ty(32, 9, &[2, 2])?)?),
        ("int16 by int8", case(op, mixed, &[2, 13], ty(32, 8, &[2, 3])?)?),
        ("longest part, near 2^62", case(op, long, &[1, -1], ty(64, 1, &[1, 1])?)?),
    ])
}

pub(super) fn head_scores() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::HeadScores;
    let own = vec![spread(8, 4, &[3, 6], 37)?, spread(8, 4, &[2, 6], 91)?];
    let shared = vec![spread(16, 12, &[2, 12], 7919)?, spread(16, 12, &[3, 6], 104_729)?];
    let one = vec![spread(8, 4, &[2, 9], 53)?, spread(8, 4, &[2, 3], 29)?];
    let long = vec![constant(8, 0, &[1, 4096], -127)?, constant(8, 0, &[1, 4096], 127)?];
    Ok(vec![
        ("every head has its own keys", case(op, own, &[2, 3], ty(16, 5, &[2, 3, 2])?)?),
        ("two heads share a group", case(op, shared, &[4, 14], ty(16, 10, &[4, 2, 3])?)?),
        ("all heads share one group", case(op, one, &[3, 0], ty(24, 8, &[3, 2, 2])?)?),
        ("longest head", case(op, long, &[1, 6], ty(32, -6, &[1, 1, 1])?)?),
    ])
}

pub(super) fn head_mix() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::HeadMix;
    let own = vec![spread(8, 7, &[2, 3, 4], 37)?, spread(8, 4, &[6, 4], 91)?];
    let shared = vec![spread(16, 15, &[4, 2, 3], 7919)?, spread(16, 12, &[4, 3], 104_729)?];
    let one = vec![spread(8, 7, &[3, 2, 5], 53)?, spread(8, 4, &[2, 5], 29)?];
    let long = vec![constant(8, 7, &[1, 1, 4096], 127)?, constant(8, 0, &[1, 4096], -127)?];
    Ok(vec![
        ("every head has its own values", case(op, own, &[2, 6], ty(16, 5, &[3, 6])?)?),
        ("two heads share a group", case(op, shared, &[4, 15], ty(16, 12, &[2, 8])?)?),
        ("all heads share one group", case(op, one, &[3, 0], ty(24, 11, &[2, 6])?)?),
        ("longest sum", case(op, long, &[1, 7], ty(32, 0, &[1, 1])?)?),
    ])
}

pub(super) fn norm() -> Result<Vec<Named>, CaseError> {
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

pub(super) fn rope() -> Result<Vec<Named>, CaseError> {
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

pub(super) fn gather() -> Result<Vec<Named>, CaseError> {
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
