//! Rules N-41 and N-45: gradients of embeddings and of shared heads.

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, constant, spread, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::GatherGrad, gather_grad), (Opcode::GroupSum, group_sum)];

fn gather_grad() -> Result<Vec<Named>, CaseError> {
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

fn group_sum() -> Result<Vec<Named>, CaseError> {
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
