//! Why a lane does not go on as it is.

use std::time::Duration;

use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::{ChainError, NetError, StoreError};
use tensorlink_program::engine::EngineError;
use tensorlink_program::executor::ExecuteError;
use tensorlink_types::B256;
use thiserror::Error;

use crate::training::boundary::ExchangeError;
use crate::training::link::LinkError;

/// Why a lane stops although its job goes on.
#[derive(Debug, Error)]
pub enum LaneError {
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A file that we wrote is gone or cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no usable device.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The device failed while executing.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// What is on disk cannot be continued from.
    #[error("{0}")]
    Record(String),
    /// The logs of an interval do not add up; a defect.
    #[error("the interval's logs do not add up: {0}")]
    Log(#[from] tensorlink_proof::commit::LogError),
    /// A repeated interval came out differently: the device cannot be trusted. Nothing is claimed.
    #[error("interval {0} came out differently the second time: this device computes wrongly, take it out of service")]
    Unsteady(u32),
    /// A state on disk is not the one that was claimed.
    #[error("the state on disk before interval {interval} has root {actual}, not {expected}: the disk is failing")]
    Corrupt {
        /// The interval.
        interval: u32,
        /// What we claimed.
        expected: B256,
        /// What is there.
        actual: B256,
    },
    /// The chain failed for good.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

impl LaneError {
    /// Whether it may be over when its cause is: a disk that is full has room again some time. What was not written is
    /// computed once more.
    const fn passes(&self) -> bool {
        matches!(
            self,
            Self::Journal(JournalError::Io { .. }) | Self::Store(StoreError::Backend(_) | StoreError::Full { .. })
        )
    }
}

/// Why the replica has to meet again.
#[derive(Debug, Error)]
pub(super) enum Interruption {
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("the previous stage did not come within {0:?}")]
    NoVisit(Duration),
    #[error("a stage has not finished interval {0}")]
    Behind(u32),
    /// Of this node.
    #[error("{0}")]
    Disk(Box<LaneError>),
    /// Not ours to mend: whoever asks for so old an interval lost its data, or lies.
    #[error("a stage wants to begin with interval {0}, which is long done")]
    LongDone(u32),
}

pub(super) enum Stop {
    /// Meet again.
    Again(Interruption),
    /// Give up.
    Fatal(LaneError),
}

impl From<LinkError> for Stop {
    fn from(error: LinkError) -> Self {
        Self::Again(error.into())
    }
}

impl From<ExchangeError> for Stop {
    fn from(error: ExchangeError) -> Self {
        Self::Again(error.into())
    }
}

impl From<Interruption> for Stop {
    fn from(error: Interruption) -> Self {
        Self::Again(error)
    }
}

impl From<LaneError> for Stop {
    fn from(error: LaneError) -> Self {
        if error.passes() { Interruption::Disk(Box::new(error)).into() } else { Self::Fatal(error) }
    }
}
