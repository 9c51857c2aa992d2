//! What an audit finds, and what keeps it from finding anything.

use tensorlink_node::files::FileError;
use tensorlink_node::journal::JournalError;
use tensorlink_node::pipeline::PipelineError;
use tensorlink_node::ports::{Call, ChainError, NetError, StoreError};
use tensorlink_node::replay::ReplayError;
use tensorlink_node::shard::ShardError;
use tensorlink_node::wire::Malformed;
use tensorlink_program::engine::EngineError;
use tensorlink_proof::audit::Undecided;
use tensorlink_proof::challenge::Stuck;
use tensorlink_proof::commit::program::ProgramTooLarge;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::commit::{Boundary, LogError};
use tensorlink_proof::fraud::FraudError;
use tensorlink_proof::merkle::OpeningError;
use thiserror::Error;

/// What an audit found.
#[derive(Clone, PartialEq, Debug)]
pub enum Finding {
    /// The claim is right.
    Right,
    /// The claim is wrong, and this call convicts its worker.
    Wrong {
        /// The proof.
        call: Box<Call>,
        /// Where it went wrong, for people.
        fault: String,
    },
    /// The claim is wrong; what convicts its worker is told once nobody can answer for the claim any more, at this
    /// time, seconds. [`Auditor::prove`](crate::Auditor::prove) it then.
    Withheld {
        /// Timestamp of a block.
        until: u64,
    },
    /// The claim is wrong, or cannot be checked, but the worker's answers do not convict it.
    Unproven(String),
}

/// Why a claim could not be audited. Nothing is known about it.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant says it")]
pub enum AuditError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Fraud(#[from] FraudError),
    #[error(transparent)]
    Program(#[from] ProgramTooLarge),
    #[error("the job is unknown to the endpoint")]
    NoJob,
    #[error("two executions of the same interval differ: this node's device computes wrongly, take it out of service")]
    Unsteady,
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Sign(#[from] SignatureError),
    #[error("the auditor is closed")]
    Closed,
}

/// What keeps a worker's answers from deciding.
#[derive(Debug, Error)]
pub(crate) enum Gap {
    #[error("no answer: {0}")]
    Net(#[from] NetError),
    #[error("a file cannot be had: {0}")]
    Store(#[from] StoreError),
    #[error("the worker declines: {0}")]
    Declined(String),
    #[error("the worker answers another question")]
    OffTopic,
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the recorded {0} is not what was claimed")]
    Record(&'static str),
    #[error("the recorded state: {0}")]
    File(#[from] FileError),
    #[error("the sent logs: {0}")]
    Log(#[from] LogError),
    #[error("the claimed output: {0}")]
    Output(#[from] OpeningError),
    #[error("of an output of {length} bytes it shows {given}, too slowly or in crumbs")]
    Slow { given: u64, length: u64 },
    #[error("what it shows is not what it signed: {0}")]
    Shown(FraudError),
    #[error("it signs {0} statements about {1} steps")]
    Statements(usize, u32),
    #[error("{0}")]
    Undecided(#[from] Undecided),
    #[error("its cid: {0}")]
    Cid(#[from] cid::Error),
    #[error("the claim of a serving job names a state: it is no receipt")]
    NoReceipt,
    #[error("the neighbour at stage {0} has no claim that tells what it sent, or a wrong one: audit that first")]
    Neighbour(u16),
    #[error("{0}")]
    Stuck(#[from] Stuck),
    #[error("the bounty would not make up for a lost bond: a challenge is not opened")]
    Unworthy,
    #[error("what it logged as received ({0:?}) is not signed by the worker that sends it")]
    Unsigned(Boundary),
    #[error(
        "it was misled by its neighbour ({0:?}), which is convicted of it; the challenge stands against the one that was misled"
    )]
    Misled(Boundary),
    #[error("it took part in no training: what it received cannot be worked out without it")]
    Alone,
}

/// Either kind of failure inside an audit.
pub(crate) enum Failed {
    Gap(Gap),
    Audit(AuditError),
}

impl<T: Into<Gap>> From<T> for Failed {
    fn from(gap: T) -> Self {
        Self::Gap(gap.into())
    }
}

pub(crate) fn fatal(error: impl Into<AuditError>) -> Failed {
    Failed::Audit(error.into())
}
