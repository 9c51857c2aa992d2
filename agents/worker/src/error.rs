//! Why a worker cannot run.

use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::{ChainError, NetError};
use tensorlink_program::engine::EngineError;
use thiserror::Error;

/// Why a worker cannot run at all.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The net is down.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The chain cannot be followed.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is no usable device.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
