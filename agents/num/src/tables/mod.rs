//! Contents of the constant tensors that Lookup (N-18) and ExpNeg (N-20) read.
//!
//! A table is part of a program and committed by its root, so it must come out the same on every machine. Hence integer
//! arithmetic only: libm's results differ between platforms.

mod exp2;

pub use exp2::exp2_table;

use tensorlink_types::TypeError;
use thiserror::Error;

use crate::tensor::TensorError;

/// Why a table could not be made.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TableError {
    /// Bits or exponent make no tensor type.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// A value does not fit the bits: use more bits or a smaller exponent.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
