//! Why a stage cannot run.

use tensorlink_types::TensorType;
use thiserror::Error;

use crate::engine::EngineError;

/// Why a stage could not run.
#[derive(Debug, Error)]
pub enum ExecuteError {
    /// The engine failed.
    #[error("{operator}: {source}")]
    Engine {
        /// Name of the operator.
        operator: String,
        /// Why.
        source: EngineError,
    },
    /// A tensor could not be moved to or from the device.
    #[error("moving {what}: {source}")]
    Transfer {
        /// What was moved.
        what: &'static str,
        /// Why.
        source: EngineError,
    },
    /// A tensor has another type than the program says.
    #[error("{what} is {actual}, the program needs {expected}")]
    Type {
        /// Constant, state or boundary tensor.
        what: String,
        /// What the program needs.
        expected: TensorType,
        /// What was given.
        actual: TensorType,
    },
    /// Another number of tensors than the program has.
    #[error("{actual} {what} given, the program has {expected}")]
    Count {
        /// Constants or state tensors.
        what: &'static str,
        /// What the program has.
        expected: usize,
        /// What was given.
        actual: usize,
    },
    /// A neighbour's tensor is needed and was not given, or given where the program takes none.
    #[error("micro-batch {micro_batch}: the tensor from the {neighbour} stage is {problem}")]
    Boundary {
        /// Micro-batch.
        micro_batch: u32,
        /// `previous` or `next`.
        neighbour: &'static str,
        /// `missing` or `not used by this stage`.
        problem: &'static str,
    },
    /// An update failed in its middle: what it had replaced of the state is gone.
    #[error("the state is between two steps, because an update failed: begin from a state that is whole")]
    Torn,
    /// A segment that is unknown, ran already, or cannot run yet.
    #[error(
        "{0} cannot run now: begin the step, then forward before backward of each micro-batch, backward in their order, round after round, then update"
    )]
    Order(String),
}
