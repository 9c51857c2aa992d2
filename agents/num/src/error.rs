//! Why an operator was refused or could not be computed.

use std::fmt;

use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Opcode, TensorType};
use thiserror::Error;

use crate::tensor::TensorError;

/// Which tensor of an operator an error is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// The operand at this position.
    Operand(usize),
    /// The output.
    Output,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operand(i) => write!(f, "operand {i}"),
            Self::Output => f.write_str("the output"),
        }
    }
}

/// Number of the rule of `SPEC.md` that defines an opcode.
pub const fn rule(opcode: Opcode) -> u32 {
    // SAFETY of the cast: opcodes are 8-bit discriminants.
    (opcode as u32).wrapping_add(10)
}

/// Why an operator breaks a rule, or its inputs do not fit it. The first seven variants are faults of the program, to
/// be corrected where it is compiled; the others are faults of the caller's data.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum OpError {
    /// The number of operands differs from the opcode's.
    #[error("N-{}: {} takes {expected} operands, got {actual}", rule(*opcode), opcode.name())]
    OperandCount {
        /// The opcode.
        opcode: Opcode,
        /// What it takes.
        expected: usize,
        /// What was given.
        actual: usize,
    },
    /// The number of attributes differs from the opcode's.
    #[error("N-{}: {} takes {expected} attributes {:?}, got {actual}", rule(*opcode), opcode.name(), opcode.attributes())]
    AttributeCount {
        /// The opcode.
        opcode: Opcode,
        /// What it takes.
        expected: usize,
        /// What was given.
        actual: usize,
    },
    /// An attribute is outside its range (rule N-6).
    #[error("N-{}: {name} of {} is {value}: choose {min} to {max}", rule(*opcode), opcode.name())]
    Attribute {
        /// The opcode.
        opcode: Opcode,
        /// The attribute's name.
        name: &'static str,
        /// Its value.
        value: i64,
        /// Least allowed value.
        min: i64,
        /// Largest allowed value.
        max: i64,
    },
    /// A shift lies about the value (rule N-7).
    #[error("N-7: {name} of {} is {actual}, the exponents require {expected}", opcode.name())]
    Precision {
        /// The opcode.
        opcode: Opcode,
        /// The attribute's name.
        name: &'static str,
        /// Exponent of the accumulator minus exponent of the output.
        expected: i64,
        /// The attribute.
        actual: i64,
    },
    /// A type does not fit the rule.
    #[error("N-{}: {place} of {} is {actual}: it must be {requirement}", rule(*opcode), opcode.name())]
    Type {
        /// The opcode.
        opcode: Opcode,
        /// Which tensor.
        place: Place,
        /// Its type.
        actual: TensorType,
        /// What the rule asks for.
        requirement: &'static str,
    },
    /// A reduction is over too many elements (rule N-6).
    #[error("N-6: {} reduces {length} elements: split it into parts of at most {MAX_REDUCTION} and add those", opcode.name())]
    Reduction {
        /// The opcode.
        opcode: Opcode,
        /// Elements of the reduction.
        length: u64,
    },
    /// The accumulator could leave 63 bits (rule N-6).
    #[error("N-6: the accumulator of {} can reach {bound}, 2^62 or more: use fewer bits or smaller factors", opcode.name())]
    Bound {
        /// The opcode.
        opcode: Opcode,
        /// What the accumulator can reach, saturated at the largest `u128`.
        bound: u128,
    },
    /// A tensor given for an operand is not of the type that the operator names.
    #[error("operand {operand} is {actual}, the operator names {expected}: pass the tensor its source produced")]
    OperandType {
        /// Position of the operand.
        operand: usize,
        /// The operator's type.
        expected: TensorType,
        /// The tensor's type.
        actual: TensorType,
    },
    /// The output has no such element.
    #[error("element {index} of an output of {elements} elements")]
    NoSuchElement {
        /// The index asked for.
        index: u64,
        /// Elements of the output.
        elements: u64,
    },
    /// An element the operator reads was not given: open the ranges that [`crate::reads`] names.
    #[error("element {element} of operand {operand} is needed and was not given")]
    Missing {
        /// Position of the operand.
        operand: usize,
        /// Row-major index of the element.
        element: u64,
    },
    /// An element given is beyond the limit of its type (rule N-1).
    #[error("N-1: element {element} of operand {operand} is {value}, beyond the limit of {ty}")]
    Range {
        /// Position of the operand.
        operand: usize,
        /// Row-major index of the element.
        element: u64,
        /// Its value.
        value: i64,
        /// The operand's type.
        ty: TensorType,
    },
    /// The output does not fit this machine's memory.
    #[error("no memory for {0} elements: use a machine with more, or smaller micro-batches")]
    Memory(u64),
    /// The result does not form a tensor; excluded by the rules above and reported rather than assumed.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
