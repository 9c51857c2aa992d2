//! Rule N-24: rows of a data set drawn for a step.

use tensorlink_num::arbitrary::CaseError;
use tensorlink_types::Opcode;

use super::pieces::{Made, Named, case, tensor, ty};

pub(super) const MADE: Made = &[(Opcode::Sample, sample)];

fn sample() -> Result<Vec<Named>, CaseError> {
    let op = Opcode::Sample;
    let features: Vec<i64> = (0..33).collect();
    let features = vec![tensor(8, 7, &[11, 3], &features)?];
    let labels: Vec<i64> = (0..11).collect();
    let labels = || Ok::<_, CaseError>(vec![tensor(8, 0, &[11], &labels)?]);
    let last = (1 << 32) - 4;
    Ok(vec![
        ("rows of features", case(op, features, &[40], ty(8, 7, &[5, 3])?)?),
        ("labels of the same rows", case(op, labels()?, &[40], ty(8, 0, &[5])?)?),
        ("largest row number", case(op, labels()?, &[last], ty(8, 0, &[4])?)?),
    ])
}
