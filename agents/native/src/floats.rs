//! Who computes the floats.

use std::ops::Range;

use thiserror::Error;

use crate::class::{DeviceClass, Precision};
use crate::task::{State, Task};

/// The device failed, or cannot run the task; the text says why.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct FloatsError(pub String);

/// A float run of step graphs on a device.
pub trait Floats: Send + Sync + 'static {
    /// What it computes by.
    fn class(&self) -> DeviceClass;

    /// Takes these steps from a state that [`Task::check`] has passed; keeps its thread busy. Gives the state after
    /// them, and the loss of each.
    ///
    /// # Errors
    /// [`FloatsError`].
    fn run(
        &self,
        task: &Task,
        state: &State,
        steps: Range<u32>,
        precision: Precision,
    ) -> Result<(State, Vec<f64>), FloatsError>;
}
