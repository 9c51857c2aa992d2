//! What the checker accepts at its edges and refuses beyond them, one row a rule.

mod sampling;
mod shifted;
mod training;
mod transformer;

use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType};

use super::check_operator;
use crate::bounds::ACCUMULATOR_BOUND;
use crate::error::{OpError, Place};

/// Bits, exponent, dimensions.
type Ty<'a> = (u8, i16, &'a [u32]);

fn operator(opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) -> Operator {
    let ty = |(bits, exponent, dims): &Ty<'_>| TensorType::new(*bits, *exponent, dims).unwrap();
    Operator {
        opcode,
        operands: operands.iter().map(|o| Operand { source: Source::State(0), ty: ty(o) }).collect(),
        attributes: attributes.to_vec(),
        output: ty(&output),
    }
}

fn accepts(opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) {
    let operator = operator(opcode, operands, attributes, output);
    assert_eq!(check_operator(&operator), Ok(()), "{operator}");
}

fn refuses(opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) -> OpError {
    let operator = operator(opcode, operands, attributes, output);
    check_operator(&operator).expect_err(&operator.to_string())
}

/// Refused for the type of this tensor.
fn refuses_type(place: Place, opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) {
    match refuses(opcode, operands, attributes, output) {
        OpError::Type { place: blamed, .. } if blamed == place => {}
        other => panic!("{opcode:?} blamed {other}, not {place}"),
    }
}

const A: Place = Place::Operand(0);
const B: Place = Place::Operand(1);
const C: Place = Place::Operand(2);
const OUT: Place = Place::Output;

#[test]
fn counts() {
    let op = Opcode::Relu;
    assert!(matches!(refuses(op, &[], &[], (8, 0, &[1])), OpError::OperandCount { expected: 1, actual: 0, .. }));
    let extra = refuses(op, &[(8, 0, &[1])], &[3], (8, 0, &[1]));
    assert!(matches!(extra, OpError::AttributeCount { expected: 0, actual: 1, .. }));
}

#[test]
fn mat_mul() {
    let op = Opcode::MatMul;
    let (a, b, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 3, &[2, 4096]), (16, 4, &[5, 4096]), (64, -1, &[2, 5]));
    accepts(op, &[a, b], &[8], y);
    let shift = refuses(op, &[a, b], &[7], y);
    assert_eq!(shift, OpError::Precision { opcode: op, name: "shift", expected: 8, actual: 7 });
    refuses_type(A, op, &[(16, 3, &[4096]), b], &[8], y);
    refuses_type(A, op, &[(17, 3, &[2, 4096]), b], &[8], y);
    refuses_type(B, op, &[(8, 3, &[2, 4096]), b], &[8], y);
    refuses_type(B, op, &[a, (16, 4, &[5, 4095])], &[8], y);
    refuses_type(OUT, op, &[a, b], &[8], (64, -1, &[5, 2]));
    refuses_type(OUT, op, &[a, b], &[8], (64, -1, &[10]));
    let long: &[u32] = &[1, 4097];
    let error = refuses(op, &[(8, 0, long), (8, 0, long)], &[0], (8, 0, &[1, 1]));
    assert_eq!(error, OpError::Reduction { opcode: op, length: 4097 });
    let far = refuses(op, &[(8, 32, &[1, 1]), (8, 32, &[1, 1])], &[64], (8, 0, &[1, 1]));
    assert!(matches!(far, OpError::Attribute { name: "shift", value: 64, min: -63, max: 63, .. }));
}

#[test]
fn elementwise() {
    let v: &[u32] = &[2, 3];
    accepts(Opcode::Transpose, &[(64, 9, v)], &[], (64, 9, &[3, 2]));
    refuses_type(A, Opcode::Transpose, &[(8, 0, &[6])], &[], (8, 0, &[6]));
    refuses_type(OUT, Opcode::Transpose, &[(8, 0, v)], &[], (8, 0, v));
    refuses_type(OUT, Opcode::Transpose, &[(8, 0, v)], &[], (9, 0, &[3, 2]));
    accepts(Opcode::Combine, &[(8, 0, v), (8, 7, &[3])], &[1, 1, 63], (8, -9, v));
    refuses_type(B, Opcode::Combine, &[(8, 0, v), (8, 0, &[4])], &[1, 1, 0], (8, 0, v));
    refuses_type(OUT, Opcode::Combine, &[(8, 0, v), (8, 0, v)], &[1, 1, 0], (8, 0, &[6]));
    refuses_type(OUT, Opcode::Relu, &[(8, 0, v)], &[], (8, 1, v));
    refuses_type(OUT, Opcode::Scale, &[(8, 0, v)], &[1, 0], (8, 0, &[6]));
    refuses_type(B, Opcode::ReluGrad, &[(8, 0, v), (8, 0, &[3, 2])], &[], (8, 0, v));
    accepts(Opcode::ReluGrad, &[(8, 0, v), (64, 5, v)], &[], (8, 0, v));
    assert!(matches!(
        refuses(Opcode::Mul, &[(8, 3, v), (8, 4, &[1])], &[6], (8, 0, v)),
        OpError::Precision { expected: 7, actual: 6, .. }
    ));
}

/// Accumulators one unit inside the bound pass, one step beyond do not.
#[test]
fn bounds() {
    let v: &[u32] = &[4];
    let bound = |error| matches!(error, OpError::Bound { bound, .. } if bound >= ACCUMULATOR_BOUND);
    accepts(Opcode::Scale, &[(63, 0, v)], &[-1, 0], (8, 0, v));
    assert!(bound(refuses(Opcode::Scale, &[(63, 0, v)], &[2, 0], (8, 0, v))));
    assert!(bound(refuses(Opcode::Scale, &[(64, 0, v)], &[1, 0], (8, 0, v))));
    accepts(Opcode::Combine, &[(62, 0, v), (62, 0, v)], &[1, -1, 0], (8, 0, v));
    assert!(bound(refuses(Opcode::Combine, &[(63, 0, v), (62, 0, v)], &[1, -1, 0], (8, 0, v))));
    accepts(Opcode::Mul, &[(32, 0, v), (32, 0, v)], &[0], (8, 0, v));
    assert!(bound(refuses(Opcode::Mul, &[(33, 0, v), (33, 0, v)], &[0], (8, 0, v))));
    accepts(Opcode::RowSum, &[(51, 0, &[1, 4096])], &[0], (8, 0, &[1]));
    assert!(bound(refuses(Opcode::RowSum, &[(52, 0, &[1, 4096])], &[0], (8, 0, &[1]))));
    accepts(Opcode::Normalize, &[(30, 0, v), (61, 0, &[1])], &[31], (8, 31, v));
    assert!(bound(refuses(Opcode::Normalize, &[(30, 0, v), (61, 0, &[1])], &[32], (8, 32, v))));
    accepts(Opcode::OneHotSub, &[(62, 0, v), (8, 0, &[1])], &[(1 << 40) - 1, 0], (8, 0, v));
    assert!(bound(refuses(Opcode::OneHotSub, &[(63, 0, v), (8, 0, &[1])], &[1, 0], (8, 0, v))));
    for c in [1 << 40, -(1 << 40), i64::MIN, i64::MAX] {
        let error = refuses(Opcode::Scale, &[(2, 0, v)], &[c, 0], (8, 0, v));
        assert!(matches!(error, OpError::Attribute { name: "c", value, .. } if value == c));
    }
}

#[test]
fn tables() {
    let v: &[u32] = &[4];
    let look = |table: &[u32], attributes: &[i64]| {
        let operator = operator(Opcode::Lookup, &[(16, 8, v), (32, 10, table)], attributes, (16, 4, v));
        check_operator(&operator)
    };
    for len in [2, 3, 5, 4097] {
        assert_eq!(look(&[len], &[0, 0, 16, 22]), Ok(()));
    }
    for len in [1, 4, 8193] {
        assert!(matches!(look(&[len], &[0, 0, 16, 22]), Err(OpError::Type { place: B, .. })), "{len}");
    }
    assert!(matches!(look(&[5], &[0, 0, 17, 23]), Err(OpError::Attribute { name: "fraction_bits", .. })));
    assert!(matches!(look(&[5], &[0, 0, 0, 6]), Err(OpError::Attribute { name: "fraction_bits", .. })));
    assert!(matches!(look(&[5], &[64, 0, 16, 22]), Err(OpError::Attribute { name: "input_shift", .. })));
    assert!(matches!(look(&[5], &[0, 1 << 40, 16, 22]), Err(OpError::Attribute { name: "low", .. })));
    assert!(matches!(look(&[5], &[0, 0, 16, 21]), Err(OpError::Precision { expected: 22, .. })));

    let (a, max, table, y): (Ty<'_>, Ty<'_>, Ty<'_>, Ty<'_>) =
        ((16, 8, &[2, 6]), (16, 8, &[2]), (26, 24, &[257]), (26, 24, &[2, 6]));
    let op = Opcode::ExpNeg;
    accepts(op, &[a, max, table], &[23637, 6, 0], y);
    refuses_type(B, op, &[a, (16, 7, &[2]), table], &[23637, 6, 0], y);
    refuses_type(B, op, &[a, (16, 8, &[3]), table], &[23637, 6, 0], y);
    refuses_type(C, op, &[a, max, (26, 24, &[256])], &[23637, 6, 0], y);
    refuses_type(C, op, &[a, max, (26, 23, &[257])], &[23637, 6, 0], y);
    refuses_type(C, op, &[a, max, (33, 24, &[257])], &[23637, 6, 0], y);
    refuses_type(OUT, op, &[a, max, table], &[23637, 6, 0], (25, 24, &[2, 6]));
    for c in [0, 1 << 24] {
        assert!(matches!(refuses(op, &[a, max, table], &[c, 6, 0], y), OpError::Attribute { name: "multiplier", .. }));
    }
}

#[test]
fn rows() {
    refuses_type(OUT, Opcode::RowMax, &[(8, 0, &[2, 3])], &[0], (8, 0, &[3]));
    accepts(Opcode::RowMax, &[(8, 0, &[2, 3, 5])], &[0], (8, 0, &[6]));
    let long = refuses(Opcode::RowMax, &[(8, 0, &[4097])], &[0], (8, 0, &[1]));
    assert_eq!(long, OpError::Reduction { opcode: Opcode::RowMax, length: 4097 });
    refuses_type(B, Opcode::Normalize, &[(8, 0, &[2, 3]), (8, 0, &[3])], &[0], (8, 0, &[2, 3]));
    refuses_type(OUT, Opcode::Normalize, &[(8, 5, &[2, 3]), (8, 3, &[2])], &[4], (8, 7, &[2, 3]));
    accepts(Opcode::Normalize, &[(8, 5, &[2, 3]), (8, 3, &[2])], &[4], (8, 6, &[2, 3]));
    let negative = refuses(Opcode::OneHotSub, &[(8, 0, &[2, 3]), (8, 0, &[2])], &[-1, 0], (8, 0, &[2, 3]));
    assert!(matches!(negative, OpError::Attribute { name: "one", .. }));
}

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

#[test]
fn errors_say_what_to_change() {
    let error = refuses(Opcode::RowSum, &[(8, 0, &[4097])], &[0], (8, 0, &[1]));
    assert_eq!(
        error.to_string(),
        "N-6: RowSum reduces 4097 elements: split it into parts of at most 4096 and add those"
    );
    let error = refuses(Opcode::Scale, &[(8, 3, &[1])], &[1, 99], (8, 0, &[1]));
    assert_eq!(error.to_string(), "N-14: shift of Scale is 99: choose -63 to 63");
}
