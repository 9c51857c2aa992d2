//! Tests of rule N-24: rows of a data set drawn for a step.

use tensorlink_types::Opcode;

use super::refusing::{A, OUT, accepts, refuses, refuses_type};
use crate::error::OpError;

#[test]
fn sample() {
    let op = Opcode::Sample;
    accepts(op, &[(8, 0, &[1 << 31])], &[(1 << 32) - 5], (8, 0, &[5]));
    let late = refuses(op, &[(8, 0, &[9])], &[(1 << 32) - 4], (8, 0, &[5]));
    assert!(matches!(late, OpError::Attribute { name: "first_row", .. }));
    refuses_type(A, op, &[(8, 0, &[(1 << 31) + 1])], &[0], (8, 0, &[5]));
    refuses_type(A, op, &[(8, 0, &[9, 2, 2])], &[0], (8, 0, &[5, 2, 2]));
    refuses_type(OUT, op, &[(8, 0, &[9, 2])], &[0], (8, 0, &[5, 3]));
    refuses_type(OUT, op, &[(8, 0, &[9, 2])], &[0], (8, 0, &[5]));
    refuses_type(OUT, op, &[(8, 0, &[9, 2])], &[0], (9, 0, &[5, 2]));
}
