//! A worker as the user sees it.

use std::time::Duration;

use async_trait::async_trait;
use tensorlink_node::ports::{NetError, StoreError};
use tensorlink_node::wire::Malformed;
use tensorlink_types::Address;
use thiserror::Error;

use crate::task::TaskError;
use crate::wire::{Done, Interval};

/// Why a worker has not done an interval. The user asks another one.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// It says that it cannot.
    #[error("it declines: {0}")]
    Declined(String),
    /// It cannot be reached.
    #[error(transparent)]
    Net(#[from] NetError),
    /// It does not speak as it should.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It gives no state, or not the one it named.
    #[error("its state cannot be had: {0}")]
    Store(#[from] StoreError),
    /// What it gives is no state of the task.
    #[error("its result is refused: {0}")]
    Task(#[from] TaskError),
    /// Its losses are not those of so many steps.
    #[error("its result is refused: {actual} losses, some of them not finite perhaps, for {expected} steps")]
    Losses {
        /// Steps.
        expected: u32,
        /// Losses.
        actual: usize,
    },
    /// It took too long.
    #[error("no result within {0:?}")]
    Late(Duration),
}

/// A worker that the user has named.
#[async_trait]
pub trait Worker: Send + Sync + 'static {
    /// Who it is.
    fn address(&self) -> Address;

    /// Has it take an interval, and waits for that. The caller bounds the wait.
    ///
    /// # Errors
    /// [`WorkerError`].
    async fn run(&self, interval: &Interval) -> Result<Done, WorkerError>;
}
