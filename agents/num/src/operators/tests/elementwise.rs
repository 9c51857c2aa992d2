//! Tests of rules N-13 to N-17 and N-52: elements combined with others in the same place, or with a vector
//! that repeats.

use tensorlink_types::Opcode;

use super::drawing::{attribute, both, count, values};
use super::meaning::{run, tensor, wide};
use super::refusing::{
    B, COEFFICIENTS, ONE, OUT, Ty, accepts, is_bound, ranges, refuses, refuses_attribute, refuses_type,
};
use crate::arbitrary::Case;
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

#[test]
fn clip() {
    let op = Opcode::Clip;
    let a: Ty<'static> = (8, 3, &[2, 3]);
    accepts(op, &[a], &[5, 5], a);
    let [least, largest] = COEFFICIENTS;
    ranges("low", op, [least, -7], |low| (vec![low, -7], [a, ONE, a]));
    ranges("high", op, [least, largest], |high| (vec![least, high], [a, ONE, a]));
    refuses_attribute("low", op, &[a], &[6, 5], a);
    refuses_type(OUT, op, &[a], &[0, 1], (8, 3, &[6]));
    refuses_type(OUT, op, &[a], &[0, 1], (9, 3, &[2, 3]));
    refuses_type(OUT, op, &[a], &[0, 1], (8, 2, &[2, 3]));
}

#[test]
fn corners_of_clip_are_drawn() {
    let op = Opcode::Clip;
    let limit = |case: &Case| case.operator.output.limit();
    both(op, "elements raised", &|case| values(case, 0).iter().any(|a| *a < attribute(case, 0)));
    both(op, "elements lowered", &|case| values(case, 0).iter().any(|a| *a > attribute(case, 1)));
    both(op, "elements as they were", &|case| {
        values(case, 0).iter().any(|a| (attribute(case, 0) + 1..attribute(case, 1)).contains(a))
    });
    both(op, "a bound beyond the limit", &|case| attribute(case, 0) < -limit(case) || attribute(case, 1) > limit(case));
    let beyond = count(op, |case| attribute(case, 0) > limit(case) || attribute(case, 1) < -limit(case));
    assert!(beyond > 4, "{beyond} ranges beyond the limit");
}

#[test]
fn an_element_is_clipped_to_the_range_and_to_its_bits() {
    let a = tensor(8, 3, &[7], &[-127, -6, -5, 0, 9, 10, 127]);
    let clipped = |low, high| wide(&run(Opcode::Clip, &[&a], &[low, high], (8, 3, &[7])));
    assert_eq!(clipped(-5, 9), [-5, -5, -5, 0, 9, 9, 9]);
    assert_eq!(clipped(4, 4), [4; 7]);
    assert_eq!(clipped(-128, 128), wide(&a));
    assert_eq!(clipped(128, 1 << 39), [127; 7]);
    assert_eq!(clipped(-(1 << 39), -128), [-127; 7]);
}
