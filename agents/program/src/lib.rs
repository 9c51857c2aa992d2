//! Programs: what every one must satisfy, engines that compute their operators, and how a stage is run on one.
//!
//! | module | what lives there |
//! |---|---|
//! | [`check`](mod@check) | what a program must satisfy; [`CheckedProgram`] |
//! | [`engine`], [`interpreter`], `conformance` | the [`Engine`] trait, its reference, its test suite (feature `conformance`) |
//! | [`fused`] | attention and chains of operators as one, for engines that gain by it |
//! | [`executor`] | runs a stage on an engine, segment by segment |
//! | [`watch`] | sees every output of a step |
//! | [`scale`] | what operators on rows need to know of them |
//!
//! The reference computes an operator:
//!
//! ```
//! use tensorlink_num::Tensor;
//! use tensorlink_program::{Engine, Reference, StepContext};
//! use tensorlink_types::operator::Operand;
//! use tensorlink_types::{Opcode, Operator, Source, TensorType};
//!
//! let ty = TensorType::new(8, 0, &[1, 3])?;
//! let operand = Operand { source: Source::State(0), ty: ty.clone() };
//! let relu = Operator { opcode: Opcode::Relu, operands: vec![operand], attributes: vec![], output: ty.clone() };
//! let x = Reference.import(&Tensor::from_wide(ty, &[-3, 0, 4])?)?;
//! let y = Reference.execute(&relu, &[&x], &StepContext::default())?;
//! assert_eq!(Reference.export(&y)?.mantissas().to_vec(), [0, 0, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here performs I/O, reads a clock or draws randomness of its own. The integration tests are among those of
//! `tensorlink-training`, whose compiler makes the programs.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::indexing_slicing)
)]

pub mod check;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod engine;
pub mod executor;
pub mod fused;
pub mod interpreter;
pub mod scale;
pub mod watch;

pub use check::{CheckedProgram, ProgramError, check};
pub use engine::{Engine, EngineError, StepContext};
pub use executor::{ExecuteError, StageExecutor};
pub use fused::attention::FusedAttention;
pub use fused::chain::Chain;
pub use interpreter::Reference;
pub use watch::{Trace, Watch};
