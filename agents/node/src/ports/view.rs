//! What the chain says when it is asked.

use serde::{Deserialize, Serialize};
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, B256, Bytes, JobId, Lineage};

/// A block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// Height.
    pub number: u64,
    /// Hash.
    pub hash: B256,
    /// Seconds.
    pub timestamp: u64,
}

/// A job's state, as in `IJobs.State`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub enum JobState {
    Posted,
    Accepted,
    Running,
    Closing,
    Settled,
}

/// What `Jobs` holds of a job. Amounts in wei of `token` (zero address: ETH), stake in wei of SNO, times in seconds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub struct JobView {
    pub id: JobId,
    pub kind: JobKind,
    pub user: Address,
    pub state: JobState,
    #[serde(with = "crate::wei")]
    pub escrow: u128,
    /// How much of the escrow audits can still take.
    #[serde(with = "crate::wei")]
    pub audit_budget: u128,
    pub token: Address,
    pub stages: u16,
    pub replicas: u16,
    pub intervals: u32,
    pub steps_per_interval: u32,
    pub accept_by: u64,
    pub duration: u64,
    pub started_at: u64,
    pub deadline: u64,
    pub challenge_window: u64,
    #[serde(with = "crate::wei")]
    pub worker_stake: u128,
    pub lineage: Lineage,
    /// Hash of its user and its terms, which offers name (P-40).
    pub terms: B256,
}

/// What `Checkpoints` holds of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LaneView {
    /// Who holds it.
    pub worker: Address,
    /// Claims `[0, finalized)` are final.
    pub finalized: u32,
    /// Claims from here on are void.
    pub void_from: Option<u32>,
}

/// What a lane of a serving job has redeemed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RedeemedView {
    /// Its last epoch; 0: none.
    pub epoch: u32,
    /// Tokens paid since the job began.
    pub tokens: u32,
    /// Timestamp of the last redemption, seconds.
    pub at: u64,
    /// Record of the last epoch, by which the list of its receipts is known
    /// ([`epoch_record`](tensorlink_proof::commit::epoch_record)); zero if there is none.
    pub record: B256,
}

/// A stake balance, wei of SNO.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub struct StakeView {
    #[serde(with = "crate::wei")]
    pub bonded: u128,
    #[serde(with = "crate::wei")]
    pub unbonding: u128,
    #[serde(with = "crate::wei")]
    pub locked: u128,
    /// When the unbonding part can be withdrawn, seconds.
    pub release_at: u64,
}

/// The seed that a period draws with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seed {
    /// The seed.
    pub value: B256,
    /// RLP of the headers that record it: of the block before the period's first, and of that one. None if it
    /// is recorded.
    pub headers: Option<(Bytes, Bytes)>,
}
