//! A claim of ours that can be repeated.

use std::sync::Arc;

use cid::Cid;
use tensorlink_node::interval::Span;
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::rpc::IntervalRecord;
use tensorlink_proof::commit::is_receipt;
use tensorlink_types::{ClaimId, Lineage};

use super::error::AuditError;
use crate::record::Interval;

/// A claim of ours with what it takes to repeat it.
#[derive(Clone)]
pub(crate) struct Repeatable {
    /// The claim's id.
    pub(crate) id: ClaimId,
    /// The record on disk.
    pub(crate) interval: Interval,
    /// The shard.
    pub(crate) shard: Arc<Shard>,
    /// What keys the job's draws, and where its steps begin.
    pub(crate) lineage: Lineage,
    /// The claim's steps; of a receipt one, the number of the text's tokens.
    pub(crate) span: Span,
}

impl Repeatable {
    /// Whether nobody may see anything of it yet: it is no receipt, and not on chain.
    pub(crate) fn is_hidden(&self) -> bool {
        !is_receipt(&self.interval.claim) && self.interval.committed_at.is_none()
    }

    /// What it takes to re-execute the interval.
    ///
    /// # Errors
    /// [`AuditError::Record`].
    pub(crate) fn record(&self) -> Result<IntervalRecord, AuditError> {
        // A receipt's program has no state, and so no file of one.
        let bytes = |cid: &str| if cid.is_empty() { Ok(vec![]) } else { cid.parse::<Cid>().map(|cid| cid.to_bytes()) };
        Ok(IntervalRecord {
            state: bytes(&self.interval.state)?,
            inputs: bytes(&self.interval.inputs)?,
            logs: self.interval.logs.clone(),
            signatures: self.interval.signatures.clone(),
            holder: self.interval.holder.clone().unwrap_or_default(),
        })
    }

    /// A step's place in the interval.
    ///
    /// # Errors
    /// [`AuditError::NoStep`].
    pub(crate) fn local(&self, step: u32) -> Result<usize, AuditError> {
        let local = step.checked_sub(self.span.first_step).filter(|local| *local < self.span.steps);
        local.map(|local| local as usize).ok_or(AuditError::NoStep(step))
    }

    /// Repeated, it came out differently.
    pub(crate) fn unsteady(&self) -> AuditError {
        let claim = &self.interval.claim;
        tracing::error!(lane = %claim.lane(), claim.interval, "a repeated interval differs from its claim");
        AuditError::Unsteady
    }
}
