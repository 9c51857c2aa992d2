//! Rules N-32 to N-37.

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::CaseError;
use tensorlink_num::tables::gumbel_table;
use tensorlink_types::Opcode;

use super::{Named, case, tensor, ty};

/// The largest share of rule N-35.
const WHOLE: i64 = 1 << 16;

pub(super) fn row_arg_max() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowArgMax;
    let ties = || tensor(8, 1, &[2, 6], &[-5, 3, 3, -127, 3, 2, -7, -9, -7, -9, 127, 127]);
    let mut long = vec![-32767i64; 4096];
    if let Some(last) = long.last_mut() {
        *last = -32766;
    }
    let long = vec![tensor(16, 1, &[1, 4096], &long)?];
    let limits = vec![tensor(64, 1, &[2, 2], &[-i64::MAX, i64::MAX, -i64::MAX, -i64::MAX])?];
    Ok(vec![
        ("the first of several", case(op, vec![ties()?], &[], ty(32, 0, &[2])?)?),
        ("three parts of each row", case(op, vec![ties()?], &[], ty(32, 0, &[2, 3])?)?),
        ("longest part, largest last", case(op, long, &[], ty(32, 0, &[1])?)?),
        ("limits of 64 bits", case(op, limits, &[], ty(32, 0, &[2])?)?),
    ])
}

pub(super) fn row_pick() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::RowPick;
    let a = || tensor(16, 7, &[2, 6], &[1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 32767, -32767]);
    let inside = vec![a()?, tensor(8, 0, &[2], &[5, 4])?];
    let parts = vec![a()?, tensor(32, 0, &[2, 3], &[0, 1, 1, 0, 1, 0])?];
    let outside = vec![a()?, tensor(64, 0, &[2, 2], &[-1, 3, i64::MAX, -i64::MAX])?];
    Ok(vec![
        ("one of each row", case(op, inside, &[], ty(16, 7, &[2])?)?),
        ("one of each of three parts", case(op, parts, &[], ty(16, 7, &[2, 3])?)?),
        ("places outside", case(op, outside, &[], ty(16, 7, &[2, 2])?)?),
    ])
}

pub(super) fn tail_sum() -> Result<Vec<Named>, CaseError> {
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

pub(super) fn threshold() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Threshold;
    let row = |k: i64, q: i64| [1, 4096, 9, k, q, -7, 7];
    // Rows: enough by count, one too few, k of 0, of less, as many as 64 bits hold; masses just enough, just not, all,
    // more than all, a share of 0, of less.
    let rows = [
        row(6, WHOLE),
        row(7, WHOLE),
        row(0, WHOLE),
        row(-i64::MAX, WHOLE),
        row(i64::MAX, WHOLE),
        row(99, 32768),
        row(99, 32769),
        row(99, WHOLE),
        row(99, WHOLE + 1),
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
        tensor(18, 0, &[2, 7], [row(1, WHOLE), row(1, WHOLE)].as_flattened())?,
    ];
    Ok(vec![
        ("counts and masses of three parts", case(op, many, &[64], ty(8, 3, &[11])?)?),
        ("one part, largest step", case(op, one, &[(1 << 40) - 1], ty(40, 3, &[2])?)?),
    ])
}

pub(super) fn perturb() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Perturb;
    let row = |tau: i64, position: i64, seed: [i64; 2]| [1, tau, position, 40, WHOLE, seed[0], seed[1]];
    let word = i64::from(i32::MAX);
    // Rows: a temperature of one, of a half, none, less than none, the largest; seeds and positions of both signs.
    let rows = [
        row(4096, 0, [0, 0]),
        row(2048, 17, [-1, 1]),
        row(0, 17, [-1, 1]),
        row(-word, 17, [5, 6]),
        row(word, -word, [word, -word]),
    ];
    let a =
        [[-300, -256, 0, 256, 300], [-1, -2, -3, -4, -5], [511, -511, 7, 8, 9], [1, 2, 3, -3, 4], [10, 20, 30, 40, 50]];
    let t = tensor(30, 8, &[5], &[-260, -100_000, 4, -1, -100_000])?;
    let rows = tensor(32, 0, &[5, 7], rows.as_flattened())?;
    let table = gumbel_table()?;
    let narrow = vec![tensor(10, 8, &[5, 5], a.as_flattened())?, t, rows.clone(), table.clone()];
    let wide = vec![
        tensor(23, -11, &[5, 2], &[1, -1, 4_194_303, -4_194_303, 0, 2, 3, 4, 5, 6])?,
        tensor(60, -11, &[5], &[-4_194_303; 5])?,
        rows.clone(),
        table.clone(),
    ];
    let fine = vec![
        tensor(32, 28, &[5, 2], &[word, -word, 1, 3, 5, 7, -1, -3, 9, 11])?,
        tensor(40, 28, &[5], &[-word; 5])?,
        rows,
        table,
    ];
    Ok(vec![
        ("temperatures, seeds and thresholds", case(op, narrow.clone(), &[4, 12], ty(32, 16, &[5, 5])?)?),
        ("largest bound: all below", case(op, narrow, &[(1 << 40) - 1, 12], ty(24, 16, &[5, 5])?)?),
        ("coarsest elements, saturating", case(op, wide, &[0, 39], ty(24, -11, &[5, 2])?)?),
        ("finest elements, halves go to even", case(op, fine, &[0, 1], ty(63, 27, &[5, 2])?)?),
    ])
}

pub(super) fn choose() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Choose;
    let row = |chosen: i64| [chosen, 0, 0, 0, 0, 0, 0];
    let controls = |bits, rows: &[[i64; 7]]| tensor(bits, 0, &[rows.len() as u32, 7], rows.as_flattened());
    let parts = vec![
        tensor(32, 0, &[4, 3], &[3, 7, 9, 3, 7, 9, 3, 7, 9, -4, -5, -6])?,
        tensor(16, 8, &[4, 3], &[-5, 8, 8, -9, -9, -10, 1, 2, 3, 4, 4, 5])?,
        controls(64, &[row(1), row(-1), row(0), row(i64::MAX)])?,
    ];
    let one = vec![
        tensor(40, 0, &[3, 1], &[(1 << 39) - 1, 1 - (1 << 39), 77])?,
        tensor(64, 0, &[3, 1], &[-i64::MAX, 0, i64::MAX])?,
        controls(2, &[row(1), row(1), row(1)])?,
    ];
    Ok(vec![
        ("the first of the largest parts, or none", case(op, parts, &[4096], ty(32, 0, &[4])?)?),
        ("one part, saturating", case(op, one, &[1], ty(32, 0, &[3])?)?),
    ])
}
