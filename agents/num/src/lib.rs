//! Exact integer arithmetic: tensors of mantissas, and the scalar reference of every operator.
//!
//! `SPEC.md` in this folder is the specification, rule by rule; this crate is its executable form, written for clarity
//! and exact over the integers (`i128` accumulators). Fast engines are measured against it.

pub mod context;
pub mod tensor;

pub use context::StepContext;
pub use tensor::{Tensor, TensorError};
