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
//! | [`compare`] | integers against floats, row by row |
//!
//! A model file and a table become a program, and the reference engine trains it:
//!
//! ```
//! use tensorlink_graph::calibrate::{calibrate, float_state, job_key};
//! use tensorlink_graph::{
//!     CheckedProgram, LocalPipeline, Margins, Model, Reference, Schedule, Stage, Table, compile, init,
//! };
//! use tensorlink_types::TensorRoot;
//!
//! let model = br#"{ "name": "sides", "layers": [{ "kind": "linear", "out": 4 }, { "kind": "relu" }],
//!     "optimizer": { "learning_rate": 0.1, "momentum": 0.9 },
//!     "batch_size": 4, "micro_batches": 1, "steps": 20, "operand_bits": 8, "seed": 1 }"#;
//! let rows: String = (0..40).map(|i| if i % 2 == 0 { "1,0,left\n" } else { "0,1,right\n" }).collect();
//!
//! let model = Model::parse("sides.json", model)?;
//! let data = Table::parse(rows.as_bytes())?.split(model.operand_bits(), model.seed())?.training;
//! let network = model.network(2, 2)?;
//! let weights = init::gaussian(&network, model.seed());
//! let margins = Margins::for_operands(model.operand_bits());
//! let exponents = calibrate(&network, &weights, &data, model.steps(), model.seed(), margins)?.exponents;
//!
//! // One stage with both layers. Roots of its constants are left out: nothing is claimed here.
//! let [stage] = compile(&network, &exponents, &data, &[0..2], |_| TensorRoot::default())?.try_into().unwrap();
//! let state = init::state(&stage.program, &float_state(&weights))?;
//! let program = CheckedProgram::new(stage.program)?;
//! let stage = Stage { program: &program, info: &stage.info, constants: &stage.constants, state: &state };
//! let mut pipeline = LocalPipeline::new(&[stage], job_key(model.seed()), || Reference)?;
//!
//! let first = pipeline.step(0, Schedule::OneByOne)?.loss();
//! let mut last = first;
//! for step in 1..model.steps() {
//!     last = pipeline.step(step, Schedule::OneByOne)?.loss();
//! }
//! assert!(last < first / 2.0, "the loss went from {first} to {last}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here performs I/O, reads a clock or draws randomness of its own.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::indexing_slicing)
)]

pub mod calibrate;
pub mod check;
pub mod compare;
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
