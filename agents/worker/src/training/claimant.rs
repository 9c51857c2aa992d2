//! Who makes claims; how one gets on chain, once, and what keeps it from there.

use std::sync::Arc;

use tensorlink_node::Identity;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::{Call, Chain, ChainError, Event};
use tensorlink_proof::commit::Contracts;
use tensorlink_proof::commit::sign::SignatureError;
use thiserror::Error;
use tokio::sync::OnceCell;

use crate::record::LaneLog;

/// Why a lane's claims can go no further.
#[derive(Debug, Error)]
pub enum ClaimsError {
    /// The lane was convicted.
    #[error("the lane was convicted: its claims from interval {0} on are void and its stake in this job is gone")]
    Convicted(u32),
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The chain holds a claim of this lane that we did not make.
    #[error(
        "the chain holds a claim or a seal for interval {0} that this node did not compute: restore the data folder that made it, and use the key on one machine only"
    )]
    Foreign(u32),
    /// The key cannot sign.
    #[error(transparent)]
    Sign(#[from] SignatureError),
}

/// Who makes claims, and where.
#[derive(Clone)]
pub struct Claimant {
    /// The contracts.
    pub chain: Arc<dyn Chain>,
    /// The worker's key.
    pub identity: Identity,
    /// What claims' ids are bound to.
    pub contracts: Contracts,
    seal_window: OnceCell<u64>,
}

impl Claimant {
    /// Of a worker with this key.
    pub const fn new(chain: Arc<dyn Chain>, identity: Identity, contracts: Contracts) -> Self {
        Self { chain, identity, contracts, seal_window: OnceCell::const_new() }
    }

    /// Seconds that replicas wait for each other; fixed at deployment.
    pub(crate) async fn seal_window(&self) -> Result<u64, ChainError> {
        let asked = async || Ok(self.chain.parameters().await?.seal_window);
        self.seal_window.get_or_try_init(asked).await.copied()
    }
}

#[derive(Debug)]
pub(crate) enum Failure {
    Final(ClaimsError),
    Chain(ChainError),
    Disk(JournalError),
}

impl From<ChainError> for Failure {
    fn from(error: ChainError) -> Self {
        Self::Chain(error)
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        match error {
            error @ JournalError::Io { .. } => Self::Disk(error),
            error @ (JournalError::Format { .. } | JournalError::Newer { .. }) => Self::Final(error.into()),
        }
    }
}

/// What became of a call that makes a claim.
pub(crate) enum Made {
    /// The claim is on chain.
    Done,
    /// It may be there; confirmed events tell.
    Unclear,
    /// The contract refuses, with this error.
    Refused(String),
}

/// Makes a claim by `call`, a commit or a reveal, unless it is made already.
pub(crate) async fn commit(
    chain: &dyn Chain,
    log: &LaneLog,
    call: Call,
    claim: &tensorlink_types::abi::Claim,
) -> Result<Made, Failure> {
    let (lane, interval) = (log.get().lane, claim.interval);
    // After a restart the claim may be on chain although its receipt was never seen. The replay of confirmed events
    // tells when.
    if chain.is_committed(lane, interval).await? {
        return Ok(Made::Unclear);
    }
    let receipt = match chain.send(call).await {
        Ok(receipt) => receipt,
        // The job was closed just now, or the link is to a block that was undone: look again, and finalise meanwhile.
        Err(ChainError::Reverted { name, arguments }) => {
            log.tell_refused("claim", interval, &name, &arguments);
            return Ok(Made::Refused(name));
        }
        Err(error) => return Err(error.into()),
    };
    let at = receipt.events.iter().find_map(|event| match event {
        Event::ClaimCommitted { claim: committed, committed_at, .. } if committed == claim => Some(*committed_at),
        _ => None,
    });
    tracing::info!(%lane, interval, gas = receipt.gas, "claim committed");
    log.update(|record| {
        if let Some(entry) = record.intervals.get_mut(&interval) {
            entry.committed_at = at;
        }
    })?;
    Ok(if at.is_some() { Made::Done } else { Made::Unclear })
}
