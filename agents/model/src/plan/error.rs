//! Why there is no program.

use tensorlink_program::check::ProgramError;
use tensorlink_types::TypeError;
use thiserror::Error;

use crate::sites::Uncalibrated;

/// Why no program could be emitted.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum PlanError {
    /// Layers that the model does not have, or none.
    #[error("layers {first} to {end} of a model of {layers}")]
    Layers {
        /// First layer asked for.
        first: u32,
        /// End, exclusive.
        end: u32,
        /// Layers of the model.
        layers: u32,
    },
    /// A text that is empty or longer than the context.
    #[error("a text of {tokens} tokens: this model takes 1 to {context}")]
    Tokens {
        /// Tokens of the text.
        tokens: u32,
        /// Most tokens.
        context: u32,
    },
    /// Calibration missed a site.
    #[error(transparent)]
    Uncalibrated(#[from] Uncalibrated),
    /// A constant is absent: the plan is of another version.
    #[error("the plan has no constant {0}: make it again")]
    Constant(String),
    /// A tensor has no type.
    #[error("{name} has no type: {source}")]
    Type {
        /// The operator.
        name: String,
        /// Why.
        source: TypeError,
    },
    /// A variant that cannot be computed exactly yet.
    #[error("{0} cannot be computed exactly yet")]
    Unsupported(&'static str),
    /// The program breaks a rule.
    #[error(transparent)]
    Program(#[from] ProgramError),
}
