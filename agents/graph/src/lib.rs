//! From a model to programs, and programs to results: the model graph, its compiler (autodiff, exponents, partition),
//! the program checker, the [`Engine`] trait and the reference interpreter.

pub mod engine;

pub use engine::{Engine, EngineError, StepContext};
