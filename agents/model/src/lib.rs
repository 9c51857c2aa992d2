//! Transformers: what a model folder describes, its weights, and the programs that compute it exactly.
//!
//! | module | what lives there |
//! |---|---|
//! | [`architecture`] | dimensions and variants of encoder and decoder transformers |
//! | [`block`] | a layer's forward pass, whatever it is built of |
//! | [`family`] | how each family's files name things |
//! | [`config`], [`import`](mod@import) | both out of a Hugging Face folder |
//! | [`gguf`] | both out of a GGUF file |
//! | [`export`] | both into one |
//! | `names`, `layout` | what its files call parameters, and how they lay them out |
//! | [`parameters`](mod@parameters) | names and shapes of an architecture's weights; the weights themselves |
//! | [`sites`], [`quantize`], `rounding` | what calibration saw; weights and tables in integers; errors that cancel |
//! | [`quantized`] | the model that comes of it, and its stages |
//! | [`setting`], `inputs` | in how many bits a model is computed; bits of what meets weights |
//! | [`plan`], `emit` | the programs of a stage |
//! | [`runner`] | run them on an engine, text after text |
//! | [`choice`] | how a text's owner wants the next token chosen |
//! | [`decode`] | the same bits token by token, with keys and values kept |
//! | [`memory`], [`partition`](mod@partition) | bytes of a stage; which stage takes which layers |
//! | [`compare`] | integers against floats, row by row |
//! | [`lora`] | adapters of low rank beside its projections |
//! | [`random`] | architectures with untrained weights, for tests and benchmarks |
//! | `fixture` | tiny Hugging Face folders, for tests (feature `fixture`) |
//!
//! Names of parameters and of activations ("sites") are the same in the float model, in calibrations and in programs:
//! `embedding.tokens`, `layers.3.attention.query.weight`, `layers.3.mlp.up`.
//!
//! A tiny decoder in integers, and the program of its only layer for a text of four tokens:
//!
//! ```
//! use tensorlink_model::fixture::integers::quantized;
//! use tensorlink_model::random::{Dimensions, llama, weights};
//! use tensorlink_model::{Head, Setting};
//! use tensorlink_types::TensorRoot;
//!
//! let size = Dimensions { vocabulary: 11, width: 16, layers: 1, heads: 2, kv_heads: 1, hidden: 24, context: 8 };
//! let architecture = llama(size);
//! let model = quantized(&architecture, Setting::Standard, &weights(&architecture, 1)?)?;
//! let plan = model.plan(0..1, Head::Choice, |_| TensorRoot::default())?;
//! assert!(!plan.program(4)?.operators.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here performs I/O, reads a clock or draws randomness of its own.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable, clippy::indexing_slicing)
)]

pub mod architecture;
pub mod block;
pub mod choice;
pub mod compare;
pub mod config;
pub mod decode;
mod emit;
pub mod export;
pub mod family;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod gguf;
pub mod import;
mod inputs;
mod layout;
pub mod lora;
pub mod memory;
mod names;
pub mod parameters;
pub mod partition;
pub mod plan;
pub mod quantize;
pub mod quantized;
pub mod random;
mod rounding;
pub mod runner;
pub mod setting;
pub mod sites;

pub use architecture::{
    Activation, Architecture, Curve, Dense, Local, Norm, Output, Placement, Pooling, Positions, Rotary, Scaling,
};
pub use choice::{ChoiceError, SamplingParams};
pub use config::{ConfigError, ContextLimit, Description, classifier, describe};
pub use decode::{CacheEngine, CachedRunner, DecodeError, Session, Turn};
pub use export::ExportError;
pub use family::{Family, Tokenizer};
pub use gguf::{Gguf, GgufError};
pub use import::{Checkpoint, ImportError, import};
pub use lora::Lora;
pub use parameters::{Matrix, Parameter, Weights, WeightsError, parameters};
pub use plan::{Head, Plan, PlanError};
pub use quantize::QuantizeError;
pub use quantized::Quantized;
pub use runner::{RunError, StageRunner, tokens};
pub use setting::{Setting, UnknownSetting};
pub use sites::{Magnitudes, Sites};
