//! Rule N-36: elements perturbed by Gumbel draws.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_num::bounds::WHOLE_SHARE;
use tensorlink_num::tables::gumbel_table;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::Perturb, perturb)];

fn perturb() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Perturb;
    let row = |tau: i64, position: i64, seed: [i64; 2]| [1, tau, position, 40, WHOLE_SHARE, seed[0], seed[1]];
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
