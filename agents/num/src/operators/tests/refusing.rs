//! Operators made up for the checker, and what it must say to them.

use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType};

use crate::bounds::ACCUMULATOR_BOUND;
use crate::error::{OpError, Place};
use crate::operators::check_operator;

/// Bits, exponent, dimensions.
pub(super) type Ty<'a> = (u8, i16, &'a [u32]);

pub(super) const A: Place = Place::Operand(0);
pub(super) const B: Place = Place::Operand(1);
pub(super) const C: Place = Place::Operand(2);
pub(super) const D: Place = Place::Operand(3);
pub(super) const E: Place = Place::Operand(4);
pub(super) const OUT: Place = Place::Output;

/// The least tensor.
pub(super) const ONE: Ty<'static> = (2, 0, &[1]);
/// The ends of the range of coefficients.
pub(super) const COEFFICIENTS: [i64; 2] = [1 - (1 << 40), (1 << 40) - 1];
/// The ends of the range of shifts.
pub(super) const SHIFTS: [i64; 2] = [-63, 63];
/// The ends of the range of words.
pub(super) const WORDS: [i64; 2] = [0, (1 << 32) - 1];

pub(super) fn operator(opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) -> Operator {
    let ty = |(bits, exponent, dims): &Ty<'_>| TensorType::new(*bits, *exponent, dims).unwrap();
    Operator {
        opcode,
        operands: operands.iter().map(|o| Operand { source: Source::State(0), ty: ty(o) }).collect(),
        attributes: attributes.to_vec(),
        output: ty(&output),
    }
}

pub(super) fn accepts(opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) {
    let operator = operator(opcode, operands, attributes, output);
    assert_eq!(check_operator(&operator), Ok(()), "{operator}");
}

pub(super) fn refuses(opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) -> OpError {
    let operator = operator(opcode, operands, attributes, output);
    check_operator(&operator).expect_err(&operator.to_string())
}

/// Refused for the type of this tensor.
pub(super) fn refuses_type(place: Place, opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) {
    match refuses(opcode, operands, attributes, output) {
        OpError::Type { place: blamed, .. } if blamed == place => {}
        other => panic!("{opcode:?} blamed {other}, not {place}"),
    }
}

/// The attribute that is blamed for its range.
pub(super) fn refuses_attribute(blamed: &str, opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) {
    match refuses(opcode, operands, attributes, output) {
        OpError::Attribute { name, .. } if name == blamed => {}
        other => panic!("{opcode:?} blamed {other}, not {blamed}"),
    }
}

/// The attribute that does not fit the exponents.
pub(super) fn refuses_precision(blamed: &str, opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) {
    match refuses(opcode, operands, attributes, output) {
        OpError::Precision { name, .. } if name == blamed => {}
        other => panic!("{opcode:?} blamed {other}, not {blamed}"),
    }
}

/// An attribute's range: both ends accepted, what lies beyond them refused. `with` puts it among the others.
pub(super) fn ranges(name: &str, opcode: Opcode, ends: [i64; 2], with: impl Fn(i64) -> (Vec<i64>, [Ty<'static>; 3])) {
    for value in ends {
        let (attributes, [a, b, y]) = with(value);
        accepts(opcode, [a, b].get(..opcode.operands()).unwrap(), &attributes, y);
    }
    let [low, high] = ends;
    for value in [low.checked_sub(1), high.checked_add(1), Some(i64::MIN), Some(i64::MAX)].into_iter().flatten() {
        let (attributes, [a, b, y]) = with(value);
        refuses_attribute(name, opcode, [a, b].get(..opcode.operands()).unwrap(), &attributes, y);
    }
}

/// Refused for an accumulator that may reach the bound.
pub(super) fn is_bound(error: OpError) -> bool {
    matches!(error, OpError::Bound { bound, .. } if bound >= ACCUMULATOR_BOUND)
}

/// Refused for a sum of one element too many.
pub(super) fn is_reduction(error: OpError) -> bool {
    matches!(error, OpError::Reduction { length: 4097, .. })
}
