//! From a model to programs, and programs to results.
//!
//! | module | what lives there |
//! |---|---|
//! | [`model`] | model files, imported weights, the network they describe |
//! | [`data`] | tabular data sets, scaled to integers and split; texts |
//! | [`step`] | the graph of one training step, its gradients, its float interpretation |
//! | [`training`] | what a training starts from, whatever is trained |
//! | [`calibrate`](mod@calibrate), [`exponents`] | static exponents from a float run |
//! | [`compile`](mod@compile), [`lower`], [`tables`] | the graph as integer programs, one for each pipeline stage |
//! | [`partition`](mod@partition) | which stage takes which layers |
//! | [`init`] | initial state |
//! | [`check`](mod@check) | what a program must satisfy; [`CheckedProgram`] |
//! | [`engine`], [`interpreter`], `conformance` | the [`Engine`] trait, its reference, its test suite (feature `conformance`) |
//! | [`fused`] | attention as one operator, for engines that gain by it |
//! | [`executor`], [`local`] | run a stage on an engine, segment by segment; run all stages in one process |
//! | [`watch`] | sees every output of a step |
//! | [`transformer`] | transformers: architectures, weights, programs |
//! | [`metrics`], [`evaluate`](mod@evaluate) | loss and accuracy, for people |
//!
//! Nothing here performs I/O, reads a clock or draws randomness of its own.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::indexing_slicing)
)]

pub mod calibrate;
pub mod check;
pub mod compile;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod data;
pub mod engine;
pub mod evaluate;
pub mod executor;
pub mod exponents;
pub mod fused;
pub mod init;
pub mod interpreter;
pub mod local;
pub mod lower;
pub mod metrics;
pub mod model;
pub mod partition;
pub mod step;
pub mod tables;
pub mod training;
pub mod transformer;
pub mod watch;

pub use check::{CheckedProgram, ProgramError, check};
pub use compile::{CompileError, CompiledStage, StageInfo, TrainingSet, compile};
pub use data::{DataError, Dataset, Table};
pub use engine::{Engine, EngineError, StepContext};
pub use evaluate::{EvaluateError, evaluate};
pub use executor::{ExecuteError, StageExecutor};
pub use exponents::{Exponents, Margins};
pub use fused::attention::FusedAttention;
pub use fused::chain::Chain;
pub use interpreter::Reference;
pub use local::{LocalPipeline, Schedule, Stage};
pub use metrics::Metrics;
pub use model::{LanguageModel, Model, ModelError, Network};
pub use training::Training;
pub use watch::{Trace, Watch};
