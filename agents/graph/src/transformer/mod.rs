//! Transformers: what a model folder describes, its weights, and the programs that compute it exactly.
//!
//! | module | what lives there |
//! |---|---|
//! | [`architecture`] | dimensions and variants of encoder and decoder transformers |
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
//! | [`memory`] | bytes of a stage; a cut into stages |
//! | [`lora`] | adapters of low rank beside its projections |
//! | [`random`] | architectures with untrained weights, for tests and benchmarks |
//! | `fixture` | tiny Hugging Face folders, for tests (feature `conformance`) |
//!
//! Names of parameters and of activations ("sites") are the same in the float model, in calibrations and in programs:
//! `embedding.tokens`, `layers.3.attention.query.weight`, `layers.3.mlp.up`.

pub mod architecture;
pub mod choice;
pub mod config;
pub mod decode;
mod emit;
pub mod export;
#[cfg(any(test, feature = "conformance"))]
pub mod fixture;
pub mod gguf;
pub mod import;
mod inputs;
mod layout;
pub mod lora;
pub mod memory;
mod names;
pub mod parameters;
pub mod plan;
pub mod quantize;
pub mod quantized;
pub mod random;
mod rounding;
pub mod runner;
pub mod setting;
pub mod sites;

pub use architecture::{
    Activation, Architecture, Curve, Dense, Family, Local, Norm, Output, Placement, Pooling, Positions, Rotary, Scaling,
};
pub use choice::{ChoiceError, SamplingParams};
pub use config::{ConfigError, ContextLimit, Description, classifier, describe};
pub use decode::{CacheEngine, CachedRunner, DecodeError, Session, Turn};
pub use export::ExportError;
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
