//! Random cases, counted by what they are: the generator reaches what it is there for.

use tensorlink_types::Opcode;

use crate::arbitrary::{Case, MAX_SIZE};
use crate::bounds::CONTROLS;
use crate::operators::Read;
use crate::{accessor, execute, reads};

/// Drawn cases of an opcode, of every size.
pub(super) fn cases(opcode: Opcode) -> impl Iterator<Item = Case> {
    (0..400).map(move |seed| Case::new(opcode, 1 + seed as u32 % MAX_SIZE, seed).unwrap())
}

/// How many of an opcode's cases are of a kind.
pub(super) fn count(opcode: Opcode, kind: impl Fn(&Case) -> bool) -> usize {
    cases(opcode).filter(|case| kind(case)).count()
}

/// An opcode's cases are of a kind often, and often not.
pub(super) fn both(opcode: Opcode, what: &str, kind: &dyn Fn(&Case) -> bool) {
    let drawn = count(opcode, kind);
    assert!((25..=375).contains(&drawn), "{}: {what} in {drawn} of 400", opcode.name());
}

pub(super) fn dim(case: &Case, operand: usize, axis: usize) -> i64 {
    case.operands[operand].ty().dims()[axis].into()
}

pub(super) fn values(case: &Case, operand: usize) -> Vec<i64> {
    case.operands[operand].mantissas().to_vec()
}

pub(super) fn output(case: &Case) -> Vec<i64> {
    execute(&case.operator, &case.operands(), &case.context).unwrap().mantissas().to_vec()
}

pub(super) fn attribute(case: &Case, index: usize) -> i64 {
    case.operator.attributes[index]
}

/// Reductions of the greatest length are among an opcode's cases; `operand` has the rows that it reduces.
pub(super) fn longest(opcode: Opcode, operand: usize) {
    let longest = count(opcode, |case| case.operands[operand].ty().row() >= 4096);
    assert!(longest > 1, "{}: longest reduction", opcode.name());
}

/// Rows are reduced in parts: there are more results than rows.
pub(super) fn in_parts(case: &Case) -> bool {
    case.operator.output.elements() > case.operands[0].ty().rows()
}

/// An opcode's cases have several rows of several parts often, and often not.
pub(super) fn parts_of_rows(opcode: Opcode) {
    let parted = count(opcode, |case| dim(case, 0, 0) * dim(case, 0, 1) > 1 && case.operator.output.row() > 1);
    assert!(parted > 60 && parted < 340, "{}: {parted} in parts", opcode.name());
}

/// An opcode's cases are causal often, and often not; whether they are is the last attribute.
pub(super) fn causal_or_not(opcode: Opcode) {
    let causal = |case: &Case| case.operator.attributes.last() == Some(&1);
    assert!(count(opcode, causal) > 60 && count(opcode, |case| !causal(case)) > 60, "{}", opcode.name());
}

/// Whether an element of the output has reads of a kind.
pub(super) fn any_element(case: &Case, kind: impl Fn(&[Read]) -> bool) -> bool {
    let operands = case.operands();
    let read = |index| reads(&case.operator, accessor(&operands), index, &case.context).unwrap();
    (0..case.operator.output.elements()).any(|index| kind(&read(index)))
}

/// Whether a row of controls, given by this operand, is of a kind.
pub(super) fn any_controls(case: &Case, operand: usize, kind: impl Fn(&[i64]) -> bool) -> bool {
    values(case, operand).chunks(CONTROLS as usize).any(kind)
}
