//! Vocabulary shared by every other crate: identifiers, tensor types, programs, claims and job terms.
//!
//! | module | what lives there |
//! |---|---|
//! | [`tensor_type`] | bits, exponent and shape of a tensor, and its one-word encoding |
//! | [`operator`] | opcodes, operands, operators: the instruction set of a program |
//! | [`program`] | the step function of one pipeline stage |
//! | [`abi`] | the structs that cross the border to Solidity, with their EIP-712 types |
//! | [`ids`] | validated newtypes for everything that is named by a number or a hash |
//!
//! Nothing here performs I/O, reads a clock or draws randomness.

pub mod abi;
pub mod ids;
pub mod operator;
pub mod program;
pub mod tensor_type;

pub use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
pub use ids::{ClaimId, JobId, JobKey, Lane, Lineage, TensorRoot};
pub use operator::{Opcode, Operand, Operator, Source};
pub use program::{Program, Segment, StateSlot};
pub use tensor_type::{TensorType, TypeError, Width};
