//! Why there is no program.

use tensorlink_num::OpError;
use tensorlink_types::{TensorType, TypeError};
use thiserror::Error;

use crate::step::language::Untrainable;
use crate::tables::TableError;
use crate::whole::CutError;

/// Why a network could not be compiled.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum CompileError {
    /// It cannot be cut into these stages.
    #[error(transparent)]
    Cut(#[from] CutError),
    /// The training set does not fit the network.
    #[error("the training set's {what} is {actual}, the network needs {expected}")]
    Data {
        /// Features or labels.
        what: &'static str,
        /// Type of the tensor.
        actual: TensorType,
        /// What is needed.
        expected: String,
    },
    /// The sequences cannot be shared.
    #[error(transparent)]
    Untrainable(#[from] Untrainable),
    /// No exponent is known for a tensor; calibrate the same network.
    #[error("no exponent for {site}: calibrate this very network first")]
    Uncalibrated {
        /// The site.
        site: String,
    },
    /// A tensor would need more bits or another exponent than types have.
    #[error("{node} has no type: {source}; use 8-bit operands or smaller batches")]
    Type {
        /// The node.
        node: String,
        /// Why.
        source: TypeError,
    },
    /// A factor of the optimiser is too small or too large for the exponents of its operands.
    #[error(
        "{node}: its factor cannot be written as an integer to 0.1 %; change learning rate, momentum or batch size"
    )]
    Factor {
        /// The node.
        node: String,
    },
    /// An operator breaks a rule of the arithmetic.
    #[error("{node}: {source}")]
    Rule {
        /// The node.
        node: String,
        /// The rule.
        source: Box<OpError>,
    },
    /// A table could not be formed.
    #[error("{node}: {source}")]
    Table {
        /// The node.
        node: String,
        /// Why.
        source: TableError,
    },
    /// A constant does not fit its type.
    #[error("the constant {name}: {source}")]
    Constant {
        /// Its name.
        name: String,
        /// Why.
        source: tensorlink_num::TensorError,
    },
    /// A leaf was treated as an operator, or a node used before it was placed; a defect of the compiler, reported
    /// rather than assumed away.
    #[error("{node} is not computed by an operator")]
    Leaf {
        /// The node.
        node: String,
    },
}
