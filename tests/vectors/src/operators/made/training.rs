//! Rules N-38 to N-41, N-45 and N-47: gradients of rows, heads and embeddings.

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::transformer::{constant, spread};
use super::{Named, case, tensor, ty};

pub(super) fn row_combine() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowCombine;
    let each = vec![tensor(16, 8, &[2, 3], &[100, 200, 300, -100, -200, -300])?, tensor(8, 8, &[2], &[127, -127])?];
    let matrices = vec![spread(8, 3, &[2, 2, 3], 37)?, tensor(8, 3, &[2, 1], &[100, -100])?];
    let all = vec![tensor(8, 0, &[3], &[1, 3, -1])?, tensor(8, 0, &[1], &[2])?];
    let own = vec![tensor(16, 0, &[3], &[32767, -32767, 1])?, tensor(16, 0, &[3], &[32767, -32767, 2])?];
    let large = (1 << 40) - 1;
    Ok(vec![
        ("one element for each row", case(op, each, &[1, -1, 0], ty(10, 8, &[2, 3])?)?),
        ("one element for each of two matrices", case(op, matrices, &[3, 1, 2], ty(8, 3, &[2, 2, 3])?)?),
        ("one element for all, halves go to even", case(op, all, &[1, 2, 1], ty(8, 0, &[3])?)?),
        ("an element each, largest coefficients cancel", case(op, own, &[large, -large, 40], ty(16, 0, &[3])?)?),
    ])
}

pub(super) fn row_mul() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowMul;
    let each = vec![tensor(16, 8, &[2, 3], &[32767, -32767, 5, 3, 1, -1])?, tensor(16, 8, &[2], &[32767, 128])?];
    let matrices = vec![spread(8, 3, &[2, 2, 3], 37)?, tensor(8, 3, &[2], &[3, -127])?];
    let word = i64::from(i32::MAX);
    let all = vec![tensor(32, 16, &[2], &[word, -7])?, tensor(32, 16, &[1], &[-word])?];
    Ok(vec![
        ("one element for each row, halves go to even", case(op, each, &[8], ty(16, 8, &[2, 3])?)?),
        ("one element for each of two matrices", case(op, matrices, &[2], ty(12, 4, &[2, 2, 3])?)?),
        ("by one element, near 2^62", case(op, all, &[-1], ty(64, 33, &[2])?)?),
    ])
}

pub(super) fn inverse_norm() -> Result<Vec<Named>, CaseError> {
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

pub(super) fn gather_grad() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::GatherGrad;
    let g = || tensor(16, 7, &[2, 6], &[1, 20, 300, -4000, 32767, -32767, -1, -3, -5, -7, -9, -11]);
    let twice = vec![g()?, tensor(8, 0, &[6], &[2, 0, 2, 1, 3, 2])?];
    let outside = vec![g()?, tensor(64, 0, &[8], &[-1, i64::MAX, 1, -i64::MAX, 3, 2, 1, 1])?];
    let one = vec![g()?, tensor(16, 0, &[2, 3], &[-5, 0, 5, 1, 0, 77])?];
    let mut ids: Vec<i64> = vec![1; 4096];
    for (t, id) in (0i64..).zip(&mut ids) {
        if t % 257 == 0 {
            *id = 2;
        }
    }
    let long = vec![constant(8, 0, &[1, 4096], -127)?, tensor(8, 0, &[4096], &ids)?];
    let wide = vec![tensor(50, 0, &[1, 3], &[(1 << 49) - 1, 1 - (1 << 49), 5])?, tensor(2, 0, &[3], &[1, 0, 1])?];
    Ok(vec![
        ("rows named once, thrice and never", case(op, twice, &[0], ty(17, 7, &[5, 2])?)?),
        ("ids outside, the last two not read", case(op, outside, &[1], ty(16, 6, &[4, 2])?)?),
        ("one row, ids of rank 2, halves go to even", case(op, one, &[1], ty(16, 6, &[1, 2])?)?),
        ("longest sum", case(op, long, &[2], ty(20, -2, &[4, 1])?)?),
        ("wide gradients, saturating", case(op, wide, &[-3], ty(50, 3, &[2, 1])?)?),
    ])
}

pub(super) fn group_sum() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::GroupSum;
    let a = || Ok::<_, CaseError>(vec![spread(16, 9, &[3, 12], 7919)?]);
    let halves = vec![tensor(8, 1, &[1, 4], &[1, 2, -1, -2])?];
    let wide = vec![tensor(60, 0, &[1, 2], &[(1 << 59) - 1, (1 << 59) - 1])?];
    let most: Vec<Tensor> = vec![spread(8, 3, &[1, 256], 53)?];
    Ok(vec![
        ("two of four heads share a group", case(op, a()?, &[4, 0], ty(17, 9, &[3, 6])?)?),
        ("all heads share one group", case(op, a()?, &[6, 2], ty(14, 7, &[3, 2])?)?),
        ("every head has its own", case(op, a()?, &[3, -4], ty(16, 13, &[3, 12])?)?),
        ("heads of one element, halves go to even", case(op, halves, &[4, 1], ty(8, 0, &[1, 2])?)?),
        ("wide mantissas", case(op, wide, &[2, -1], ty(64, 1, &[1, 1])?)?),
        ("most heads of a group", case(op, most, &[128, 0], ty(16, 3, &[1, 2])?)?),
    ])
}

pub(super) fn slice() -> Result<Vec<Named>, CaseError> {
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
