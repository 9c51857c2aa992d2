//! Exact integer arithmetic: tensors of mantissas, and the scalar reference of every operator.
//!
//! `SPEC.md` in this folder is the specification, rule by rule; this crate is its executable form. Fast engines and the
//! contract are measured against it.
//!
//! | module | what lives there |
//! |---|---|
//! | [`mod@tensor`] | a type and its mantissas, valid by construction (N-1) |
//! | [`fixed`] | rescale, div, clamp (N-2, N-3) |
//! | [`philox`] | pseudo-random draws (N-4) |
//! | [`mod@operators`] | each operator: what makes it acceptable, its output, one element, what that reads (N-6 to N-8, N-11 on) |
//! | [`bounds`] | the numbers that those rules name |
//! | [`mod@execute`] | whole operators, in `i64` where the checker proved that it holds them |
//! | [`mod@element`] | one element and what it reads, as the rules are written, over `i128` |
//! | [`error`] | why an operator was refused |
//! | [`tables`] | contents of the constant tensors of N-18, N-20 and N-36 |
//! | [`context`] | job key and step |
//! | `arbitrary` | drawn operators for comparing engines, behind the feature `cases`; strategies behind `arbitrary` |
//!
//! A product of two rows, whole and as the one element that a contract would recompute:
//!
//! ```
//! use tensorlink_num::{StepContext, Tensor, accessor, element, execute};
//! use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType};
//!
//! let row = TensorType::new(8, 4, &[1, 2])?; // values are mantissas times 2^−4
//! let a = Tensor::from_wide(row.clone(), &[16, 8])?; // 1.0, 0.5
//! let b = Tensor::from_wide(row.clone(), &[32, -16])?; // 2.0, −1.0
//! let operand = |slot| Operand { source: Source::State(slot), ty: row.clone() };
//! let product = Operator {
//!     opcode: Opcode::MatMul,
//!     operands: vec![operand(0), operand(1)],
//!     attributes: vec![4], // shift: exponents of the operands, less that of the output
//!     output: TensorType::new(8, 4, &[1, 1])?,
//! };
//!
//! let (operands, context) = ([&a, &b], StepContext::default());
//! let whole = execute(&product, &operands, &context)?;
//! assert_eq!(whole.to_f64(), [1.5]);
//! assert_eq!(whole.get(0), Some(element(&product, accessor(&operands), 0, &context)?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! No input makes this crate panic.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

#[cfg(any(test, feature = "cases"))]
pub mod arbitrary;
pub mod bounds;
pub mod context;
pub mod element;
pub mod error;
pub mod execute;
pub mod fixed;
pub mod operators;
pub mod philox;
pub mod tables;
pub mod tensor;

pub use context::StepContext;
pub use element::{accessor, element, reads};
pub use error::{OpError, Place};
pub use execute::execute;
pub use operators::{CheckedOperator, Read, check_operator};
pub use tensor::{Mantissas, Tensor, TensorError};
