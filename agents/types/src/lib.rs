//! Vocabulary shared by every other crate: identifiers, tensor types, programs, claims and job terms.
//!
//! | module | what lives there |
//! |---|---|
//! | [`tensor_type`] | bits, exponent and shape of a tensor, and its one-word encoding |
//! | [`operator`] | opcodes, operands, operators: the instruction set of a program |
//! | [`program`] | the step function of one pipeline stage |
//! | [`abi`] | the structs that are shared with Solidity, with their EIP-712 types |
//! | [`address`] | addresses as people type them, with their checksums |
//! | [`ids`] | validated newtypes for everything that is named by a number or a hash |
//!
//! A tensor type is one word on chain, and valid by construction:
//!
//! ```
//! use tensorlink_types::{TensorType, TypeError, Width};
//!
//! // Weights of a layer: 8 bits, each value a mantissa times 2^−7.
//! let weights = TensorType::new(8, 7, &[128, 64])?;
//! assert_eq!((weights.elements(), weights.width(), weights.limit()), (8192, Width::I8, 127));
//! assert_eq!(TensorType::from_word(weights.to_word())?, weights);
//!
//! assert_eq!(TensorType::new(65, 0, &[1]), Err(TypeError::Bits(65)));
//! # Ok::<(), TypeError>(())
//! ```
//!
//! Nothing here performs I/O, reads a clock or draws randomness.

pub mod abi;
pub mod address;
pub mod ids;
pub mod operator;
pub mod program;
pub mod tensor_type;

pub use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
pub use ids::{ClaimId, JobId, JobKey, Lane, Lineage, TensorRoot};
pub use operator::{Opcode, Operand, Operator, Source};
pub use program::{Program, Segment, StateSlot};
pub use tensor_type::{TensorType, TypeError, Width};
