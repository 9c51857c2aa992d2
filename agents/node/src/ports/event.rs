//! What happens on chain, as a role sees it.

use serde::{Deserialize, Serialize};
use tensorlink_proof::challenge::Told;
use tensorlink_types::abi::{AuditAnswer, Claim, Demand, JobTerms, Offer, StepStatement};
use tensorlink_types::{Address, B256, Bytes, ClaimId, JobId, JobKey, Lane, U256};

use super::role::Role;

/// How a worker was convicted, as in `IDisputes.Fault`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// One output element of one operator is wrong.
    Element,
    /// The trace is not wired to the state or to a boundary log.
    Wiring,
    /// Signed statements contradict each other or the claim.
    Contradiction,
    /// A challenge was not answered in time.
    Silence,
    /// What it signed to a neighbour as sent is not what its claim commits to.
    Equivocation,
    /// Data that it holds was demanded on chain and not shown.
    Withholding,
}

/// Something that happened on chain. Tagged from outside: what serde reads of a tag inside it buffers, and its buffer
/// holds no 128 bits.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub enum Event {
    JobPosted {
        job: JobId,
        user: Address,
        deposit: U256,
        terms: JobTerms,
    },
    JobAccepted {
        job: JobId,
        offers: Vec<Offer>,
    },
    JobStarted {
        job: JobId,
        job_key: JobKey,
        deadline: u64,
    },
    JobClosing {
        job: JobId,
        convicted: bool,
    },
    JobSettled {
        job: JobId,
        refund: U256,
    },
    Paid {
        lane: Lane,
        worker: Address,
        units: u32,
        amount: U256,
    },
    ClaimCommitted {
        id: ClaimId,
        claim: Claim,
        committed_at: u64,
    },
    ClaimSealed {
        lane: Lane,
        interval: u32,
        seal: B256,
        sealed_at: u64,
    },
    ReplicasDiffer {
        claim: ClaimId,
        job: JobId,
        stage: u16,
        interval: u32,
    },
    ClaimsFinalized {
        lane: Lane,
        from: u32,
        to: u32,
    },
    ClaimsVoided {
        lane: Lane,
        from: u32,
    },
    VoucherRedeemed {
        lane: Lane,
        epoch: u32,
        tokens: u32,
        receipts: B256,
    },
    ChallengeOpened {
        challenge: U256,
        id: ClaimId,
        claim: Claim,
        challenger: Address,
        worker: Address,
    },
    Challenge {
        challenge: U256,
        told: Told,
    },
    Convicted {
        lane: Lane,
        claim: ClaimId,
        worker: Address,
        auditor: Address,
        fault: Fault,
        step: u32,
        operator: u32,
        element: u64,
        claimed: String,
        recomputed: String,
    },
    Demanded {
        id: U256,
        demand: Box<Demand>,
    },
    /// Before its demand ends, the sender's attestation of the log with this root, in answer to a demand for what it
    /// sent (`WordGiven` on chain).
    #[serde(alias = "word_given")]
    AttestationGiven {
        id: U256,
        root: B256,
        signature: Bytes,
    },
    DemandEnded {
        id: U256,
        /// What was shown, from this leaf on; none if the demand expired.
        shown: Option<(u32, Bytes)>,
        /// Whether the holder was convicted of not showing it.
        convicted: bool,
    },
    AuditRevealed {
        claim: ClaimId,
        auditor: Address,
        job: JobId,
        answer: AuditAnswer,
        fee: U256,
    },
    AuditorAccused {
        claim: ClaimId,
        auditor: Address,
        statement: StepStatement,
        signature: Bytes,
    },
    AuditorPenalised {
        claim: ClaimId,
        auditor: Address,
        accuser: Address,
        amount: U256,
    },
    /// An auditor was paid its share of the bounty of a convicted lane.
    AuditorShared {
        claim: ClaimId,
        auditor: Address,
        job: JobId,
        amount: U256,
    },
    Staked {
        account: Address,
        role: Role,
        amount: U256,
    },
    UnstakeRequested {
        account: Address,
        role: Role,
        amount: U256,
        release_at: u64,
    },
    StakeWithdrawn {
        account: Address,
        role: Role,
        amount: U256,
    },
    Slashed {
        account: Address,
        amount: U256,
        bounty: U256,
        /// For the lane's auditors. None in what was written before there was such a share.
        #[serde(default)]
        shared: U256,
        harm: U256,
        burned: U256,
    },
}

impl Event {
    /// The job that this names.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Self::JobPosted { job, .. }
            | Self::JobAccepted { job, .. }
            | Self::JobStarted { job, .. }
            | Self::JobClosing { job, .. }
            | Self::JobSettled { job, .. }
            | Self::ReplicasDiffer { job, .. }
            | Self::AuditRevealed { job, .. }
            | Self::AuditorShared { job, .. } => Some(*job),
            Self::Paid { lane, .. }
            | Self::Convicted { lane, .. }
            | Self::ClaimSealed { lane, .. }
            | Self::ClaimsFinalized { lane, .. }
            | Self::ClaimsVoided { lane, .. }
            | Self::VoucherRedeemed { lane, .. } => Some(lane.job),
            Self::ClaimCommitted { claim, .. } | Self::ChallengeOpened { claim, .. } => Some(JobId(claim.job)),
            Self::Demanded { demand, .. } => Some(JobId(demand.job)),
            Self::Challenge { .. }
            | Self::AttestationGiven { .. }
            | Self::DemandEnded { .. }
            | Self::AuditorAccused { .. }
            | Self::AuditorPenalised { .. }
            | Self::Staked { .. }
            | Self::UnstakeRequested { .. }
            | Self::StakeWithdrawn { .. }
            | Self::Slashed { .. } => None,
        }
    }

    /// The training job about whose claims this tells, or that it closes.
    pub fn job_of_claims(&self) -> Option<JobId> {
        match self {
            Self::ClaimCommitted { claim, .. } => Some(JobId(claim.job)),
            Self::ClaimSealed { lane, .. } | Self::ClaimsVoided { lane, .. } => Some(lane.job),
            Self::ReplicasDiffer { job, .. } | Self::JobClosing { job, .. } => Some(*job),
            _ => None,
        }
    }
}

/// A confirmed event and where it stands. Positions are unique and increase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EventAt {
    /// Height of its block.
    pub block: u64,
    /// Hash of its block.
    pub block_hash: B256,
    /// Timestamp of its block, seconds.
    pub timestamp: u64,
    /// Index of the log in the block.
    pub log_index: u64,
    /// Transaction that caused it.
    pub transaction: B256,
    /// What happened.
    pub event: Event,
}

/// Where an event is on the chain: its block, and its index there.
pub type Place = (u64, u64);

impl EventAt {
    /// Where it is.
    pub const fn place(&self) -> Place {
        (self.block, self.log_index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attestation_that_was_kept_under_its_older_name_is_read() {
        let event = Event::AttestationGiven { id: U256::from(7), root: B256::repeat_byte(1), signature: Bytes::new() };
        let json = serde_json::to_string(&event).unwrap();
        let older = json.replace("attestation_given", "word_given");
        assert_ne!(older, json);
        assert_eq!(serde_json::from_str::<Event>(&older).unwrap(), event);
    }
}
