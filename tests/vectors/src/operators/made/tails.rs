//! Rules N-34 and N-35: what of a row reaches a threshold, and thresholds raised.

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::CaseError;
use tensorlink_num::bounds::WHOLE_SHARE;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::TailSum, tail_sum), (Opcode::Threshold, threshold)];

fn tail_sum() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::TailSum;
    // The first row has elements at, below and above 10; none of the second reaches, all of the third do.
    let a = [9, 10, 11, -127, 127, 10, -50, -51, -52, -53, -54, -55, 99, 98, 97, 96, 95, 94];
    let w = [1, 2, 4, 8, 16, 32, 1, 1, 1, 1, 1, 1, 3, 5, -7, 0, -8191, 8191];
    let operands = || -> Result<Vec<Tensor>, CaseError> {
        Ok(vec![tensor(8, 3, &[3, 6], &a)?, tensor(14, 9, &[3, 6], &w)?, tensor(20, 3, &[3], &[7, 0, -300_000])?])
    };
    let last = (1 << 40) - 1;
    let long = vec![
        tensor(8, 0, &[1, 4096], &vec![5; 4096])?,
        tensor(2, 0, &[1, 4096], &vec![1; 4096])?,
        tensor(61, 0, &[1], &[-(1 << 39)])?,
    ];
    Ok(vec![
        ("weights of those that reach", case(op, operands()?, &[3, 1, 0], ty(16, 9, &[3])?)?),
        ("weights of three parts, halves go to even", case(op, operands()?, &[3, 1, 1], ty(14, 8, &[3, 3])?)?),
        ("how many reach", case(op, operands()?, &[3, 0, 0], ty(14, 0, &[3])?)?),
        ("how many of two parts, saturating", case(op, operands()?, &[3, 0, -9], ty(11, 9, &[3, 2])?)?),
        ("least bound: all reach", case(op, operands()?, &[-last, 0, 0], ty(14, 0, &[3, 2])?)?),
        ("largest bound: none reaches", case(op, operands()?, &[last, 1, 0], ty(16, 9, &[3])?)?),
        ("longest part", case(op, long, &[1 << 39, 1, 0], ty(14, 0, &[1])?)?),
    ])
}

fn threshold() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Threshold;
    let row = |k: i64, q: i64| [1, 4096, 9, k, q, -7, 7];
    // Rows: enough by count, one too few, k of 0, of less, as many as 64 bits hold; masses just enough, just not, all,
    // more than all, a share of 0, of less.
    let rows = [
        row(6, WHOLE_SHARE),
        row(7, WHOLE_SHARE),
        row(0, WHOLE_SHARE),
        row(-i64::MAX, WHOLE_SHARE),
        row(i64::MAX, WHOLE_SHARE),
        row(99, 32768),
        row(99, 32769),
        row(99, WHOLE_SHARE),
        row(99, WHOLE_SHARE + 1),
        row(99, 0),
        row(99, -i64::MAX),
    ];
    let counts = [[1, 2, 3], [1, 2, 3], [0, 0, 0], [0, 0, 1], [127, 127, 127]].into_iter().chain([[1, 1, 1]; 6]);
    let counts: Vec<i64> = counts.flatten().collect();
    let weighed = |total: i64| [total - 2, 1, 1];
    let masses = [weighed(10), weighed(10), weighed(0), weighed(10), weighed(10)].into_iter();
    let masses = masses.chain([[256, 200, 56], [256, 200, 56], [500, 500, 24], [1000, 20, 3], [0, 0, 0], [0, 0, 1]]);
    let masses: Vec<i64> = masses.flatten().collect();
    let totals: Vec<i64> = vec![[1000, 20, 4]; 11].into_iter().flatten().collect();
    let t = [100, 100, 100, 100, 127, 0, 0, -127, 5, 6, 7];
    let many = vec![
        tensor(8, 3, &[11], &t)?,
        tensor(8, 0, &[11, 3], &counts)?,
        tensor(12, 5, &[11, 3], &masses)?,
        tensor(12, 5, &[11, 3], &totals)?,
        tensor(64, 0, &[11, 7], rows.as_flattened())?,
    ];
    let one = vec![
        tensor(40, 3, &[2], &[-5, 1 << 38])?,
        tensor(2, 0, &[2, 1], &[1, 0])?,
        tensor(32, 24, &[2, 1], &[0, i64::from(i32::MAX)])?,
        tensor(32, 24, &[2, 1], &[i64::from(i32::MAX), i64::from(i32::MAX)])?,
        tensor(18, 0, &[2, 7], [row(1, WHOLE_SHARE), row(1, WHOLE_SHARE)].as_flattened())?,
    ];
    Ok(vec![
        ("counts and masses of three parts", case(op, many, &[64], ty(8, 3, &[11])?)?),
        ("one part, largest step", case(op, one, &[(1 << 40) - 1], ty(40, 3, &[2])?)?),
    ])
}
