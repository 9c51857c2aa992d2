//! What a cache needs of an engine beyond operators.

use std::ops::Range;

use tensorlink_types::TensorType;

use tensorlink_program::engine::{Engine, EngineError};

/// Rows that are kept, and how they are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Type of one row, `[1, width]`.
    pub row: TensorType,
    /// Whether they are read as columns, `[width, rows]`, as HeadMix reads values.
    pub columns: bool,
    /// Most rows.
    pub most: u32,
}

/// An engine that keeps rows which come one after another, and takes tensors apart by rows.
pub trait CacheEngine: Engine {
    /// Memory for rows. Grows by doubling, so that a row is copied a bounded number of times.
    type Room;

    /// Memory for rows of a layout, none of them written yet.
    ///
    /// # Errors
    /// [`EngineError::Device`] when memory runs out.
    fn room(&self, layout: &Layout) -> Result<Self::Room, EngineError>;

    /// Writes rows `at` and following, over what was there. Tensors that [`Self::read`] gave before keep what they
    /// had.
    ///
    /// # Errors
    /// [`EngineError::Malformed`] for rows of another type, beyond the layout's most or after a gap;
    /// [`EngineError::Device`] when memory runs out.
    fn write(&self, room: &mut Self::Room, at: u32, rows: &Self::Tensor) -> Result<(), EngineError>;

    /// Rows that follow one another, as one tensor.
    ///
    /// # Errors
    /// [`EngineError::Malformed`] for none, or rows that were not written; [`EngineError::Device`].
    fn read(&self, room: &Self::Room, rows: Range<u32>) -> Result<Self::Tensor, EngineError>;

    /// Rows of a tensor, row being an index of its first dimension.
    ///
    /// # Errors
    /// [`EngineError::Malformed`] for rows that it has not, or none; [`EngineError::Device`].
    fn part(&self, tensor: &Self::Tensor, rows: Range<u32>) -> Result<Self::Tensor, EngineError>;

    /// The same for rows in any order, as often as they are named.
    ///
    /// # Errors
    /// As [`Self::part`].
    fn pick(&self, tensor: &Self::Tensor, rows: &[u32]) -> Result<Self::Tensor, EngineError>;

    /// One tensor of the rows of several, which agree in everything else.
    ///
    /// # Errors
    /// [`EngineError::Malformed`] for none, or tensors that do not agree; [`EngineError::Device`].
    fn stack(&self, tensors: &[Self::Tensor]) -> Result<Self::Tensor, EngineError>;
}

/// An engine that several runners share.
impl<E: CacheEngine> CacheEngine for &E {
    type Room = E::Room;

    fn room(&self, layout: &Layout) -> Result<Self::Room, EngineError> {
        (**self).room(layout)
    }

    fn write(&self, room: &mut Self::Room, at: u32, rows: &Self::Tensor) -> Result<(), EngineError> {
        (**self).write(room, at, rows)
    }

    fn read(&self, room: &Self::Room, rows: Range<u32>) -> Result<Self::Tensor, EngineError> {
        (**self).read(room, rows)
    }

    fn part(&self, tensor: &Self::Tensor, rows: Range<u32>) -> Result<Self::Tensor, EngineError> {
        (**self).part(tensor, rows)
    }

    fn pick(&self, tensor: &Self::Tensor, rows: &[u32]) -> Result<Self::Tensor, EngineError> {
        (**self).pick(tensor, rows)
    }

    fn stack(&self, tensors: &[Self::Tensor]) -> Result<Self::Tensor, EngineError> {
        (**self).stack(tensors)
    }
}
