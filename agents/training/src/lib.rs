//! From a model file and data to the programs of a training step, and the training of all stages in one process.
//!
//! | module | what lives there |
//! |---|---|
//! | [`model`] | model files, imported weights, the network they describe |
//! | [`data`] | tabular data sets, scaled to integers and split; texts |
//! | [`step`] | the graph of one training step, its gradients, its float interpretation |
//! | [`start`] | what a training starts from, whatever is trained |
//! | [`calibrate`](mod@calibrate), [`exponents`] | static exponents from a float run |
//! | [`compile`](mod@compile), [`lower`], [`tables`] | the graph in integers |
//! | [`whole`] | a step in integers, and its stages: cut out of it, and put together again |
//! | [`cost`] | what a step costs, layer by layer |
//! | [`init`] | initial state |
//! | [`local`] | runs all stages in one process |
//! | [`metrics`], [`evaluate`](mod@evaluate) | loss and accuracy, for people |
//! | `conformance` | small trainings on an engine against its reference (feature `conformance`) |
//!
//! A model file and a table become a program, and the reference engine trains it:
//!
//! ```
//! use tensorlink_training::calibrate::{calibrate, float_state, job_key};
//! use tensorlink_program::{CheckedProgram, Reference};
//! use tensorlink_training::{LocalPipeline, Margins, Model, Schedule, Stage, Table, compile, init};
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
pub mod compile;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod cost;
pub mod data;
pub mod evaluate;
pub mod exponents;
pub mod init;
pub mod local;
pub mod lower;
pub mod metrics;
pub mod model;
pub mod start;
pub mod step;
pub mod tables;
pub mod whole;

pub use compile::{CompileError, CompiledStage, TrainingSet, compile};
pub use data::{DataError, Dataset, Table};
pub use evaluate::{EvaluateError, evaluate};
pub use exponents::{Exponents, Margins};
pub use local::{LocalPipeline, Schedule, Stage};
pub use metrics::Metrics;
pub use model::{LanguageModel, Model, ModelError, Network};
pub use start::Training;
pub use whole::StageInfo;
