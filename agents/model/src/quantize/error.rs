//! Why a model cannot be quantised.

use tensorlink_num::TensorError;
use tensorlink_num::tables::TableError;
use tensorlink_types::TypeError;
use thiserror::Error;

use crate::parameters::WeightsError;
use crate::plan::error::PlanError;

/// Why a model could not be quantised.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum QuantizeError {
    /// The weights are not the architecture's.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// Activations outgrew floats on the texts that the model was calibrated on.
    #[error(
        "calibration overflows at {site}: the model's activations there are larger than floats can be squared and \
         summed. Its weights are damaged, or it needs other texts: name some like those to come with --calibration"
    )]
    Overflow {
        /// The activation.
        site: String,
    },
    /// A constant has no type; its values are too large or too small for any exponent.
    #[error("{name} cannot be written in integers: {source}")]
    Type {
        /// The constant.
        name: String,
        /// Why.
        source: TypeError,
    },
    /// Values do not fit a type that was made for them: a defect of this module.
    #[error("{name}: {source}")]
    Tensor {
        /// The constant.
        name: String,
        /// Why.
        source: TensorError,
    },
    /// A table could not be formed.
    #[error("{name}: {source}")]
    Table {
        /// The constant.
        name: String,
        /// Why.
        source: TableError,
    },
    /// The programs could not be emitted.
    #[error(transparent)]
    Plan(#[from] PlanError),
}
