//! Contents of the constant tensors that Lookup (N-18), ExpNeg (N-20) and Perturb (N-36) read.
//!
//! A table is part of a program and committed by its root, so it must come out the same on every machine. Hence integer
//! arithmetic only: libm's results differ between platforms.

mod exp2;
mod functions;
mod gumbel;
mod real;

pub use exp2::exp2_table;
pub use functions::{Function, Grid, function_table};
pub use gumbel::gumbel_table;

use tensorlink_types::TypeError;
use thiserror::Error;

use crate::tensor::TensorError;

/// Why a table could not be made.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TableError {
    /// Bits or exponent make no tensor type.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// A grid that Lookup could not address: choose a first point of at most 2^31 cells, cells of 2^−64 to 2^32, at
    /// most 2^12 of them, and a span that is a power of two and divides the low end where cells are wider than one.
    #[error("no table on 2^{log} cells of 2^{cell} from cell {first} on")]
    Grid {
        /// First point, in cells (before division into cells: in ones).
        first: i64,
        /// `log2` of the cell width.
        cell: i16,
        /// `log2` of the number of cells.
        log: u32,
    },
    /// An exponent that leaves no digit or asks for more than are computed: choose −165 to 89.
    #[error("no table of exponent {0}: choose -165 to 89")]
    Exponent(i16),
    /// A value does not fit the bits: use more bits or a smaller exponent.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

#[cfg(test)]
mod tests;
