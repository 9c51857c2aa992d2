//! Tests of rules N-13 to N-17: elements combined with others in the same place, or with a vector that repeats.

use tensorlink_types::Opcode;

use super::refusing::{B, OUT, accepts, is_bound, refuses, refuses_type};
use crate::error::OpError;

#[test]
fn combine() {
    let op = Opcode::Combine;
    let v: &[u32] = &[2, 3];
    accepts(op, &[(8, 0, v), (8, 7, &[3])], &[1, 1, 63], (8, -9, v));
    refuses_type(B, op, &[(8, 0, v), (8, 0, &[4])], &[1, 1, 0], (8, 0, v));
    refuses_type(OUT, op, &[(8, 0, v), (8, 0, v)], &[1, 1, 0], (8, 0, &[6]));
    let v: &[u32] = &[4];
    accepts(op, &[(62, 0, v), (62, 0, v)], &[1, -1, 0], (8, 0, v));
    assert!(is_bound(refuses(op, &[(63, 0, v), (62, 0, v)], &[1, -1, 0], (8, 0, v))));
}

#[test]
fn scale() {
    let op = Opcode::Scale;
    refuses_type(OUT, op, &[(8, 0, &[2, 3])], &[1, 0], (8, 0, &[6]));
    let v: &[u32] = &[4];
    accepts(op, &[(63, 0, v)], &[-1, 0], (8, 0, v));
    assert!(is_bound(refuses(op, &[(63, 0, v)], &[2, 0], (8, 0, v))));
    assert!(is_bound(refuses(op, &[(64, 0, v)], &[1, 0], (8, 0, v))));
    for c in [1 << 40, -(1 << 40), i64::MIN, i64::MAX] {
        let error = refuses(op, &[(2, 0, v)], &[c, 0], (8, 0, v));
        assert!(matches!(error, OpError::Attribute { name: "c", value, .. } if value == c));
    }
}

#[test]
fn mul() {
    let op = Opcode::Mul;
    let v: &[u32] = &[2, 3];
    assert!(matches!(
        refuses(op, &[(8, 3, v), (8, 4, &[1])], &[6], (8, 0, v)),
        OpError::Precision { expected: 7, actual: 6, .. }
    ));
    let v: &[u32] = &[4];
    accepts(op, &[(32, 0, v), (32, 0, v)], &[0], (8, 0, v));
    assert!(is_bound(refuses(op, &[(33, 0, v), (33, 0, v)], &[0], (8, 0, v))));
}

#[test]
fn relu() {
    let v: &[u32] = &[2, 3];
    refuses_type(OUT, Opcode::Relu, &[(8, 0, v)], &[], (8, 1, v));
}

#[test]
fn relu_grad() {
    let op = Opcode::ReluGrad;
    let v: &[u32] = &[2, 3];
    refuses_type(B, op, &[(8, 0, v), (8, 0, &[3, 2])], &[], (8, 0, v));
    accepts(op, &[(8, 0, v), (64, 5, v)], &[], (8, 0, v));
}
