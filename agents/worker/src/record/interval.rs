//! What is recorded of an interval: that of this lane, and what its replicas have sealed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tensorlink_proof::commit::SenderSignatures;
use tensorlink_types::abi::{BoundaryLogs, Claim, Holder};

/// A finished interval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// What we claim.
    pub claim: Claim,
    /// Preimage of the claim's io root.
    pub logs: BoundaryLogs,
    /// The neighbours' signatures of what was received in it.
    #[serde(default)]
    pub signatures: SenderSignatures,
    /// CID of the state before the interval; of a receipt, which has none, no text.
    pub state: String,
    /// CID of the boundary tensors received in it.
    pub inputs: String,
    /// Timestamp of the block that took the claim, once it did.
    pub committed_at: Option<u64>,
    /// Whether that block is confirmed: a reorganisation cannot undo it any more.
    #[serde(default)]
    pub confirmed: bool,
    /// Whether the chain has a seal of the claim; in jobs with one replica never.
    #[serde(default)]
    pub sealed: bool,
    /// Who else keeps the state after the interval, by its attestation.
    #[serde(default)]
    pub holder: Option<Holder>,
}

impl Interval {
    /// An interval just finished; state and inputs are the CIDs of its files.
    pub fn new(claim: Claim, logs: BoundaryLogs, state: String, inputs: String) -> Self {
        let signatures = SenderSignatures::default();
        Self {
            claim,
            logs,
            signatures,
            state,
            inputs,
            committed_at: None,
            confirmed: false,
            sealed: false,
            holder: None,
        }
    }
}

/// What confirmed events tell of the seals of all replicas for a stage and interval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Round {
    /// When the first was made, seconds.
    pub sealed_at: u64,
    /// Replicas that have sealed.
    pub replicas: BTreeSet<u16>,
    /// When the first claim was revealed, seconds.
    pub revealed_at: Option<u64>,
    /// Whether another was another.
    pub differ: bool,
}
