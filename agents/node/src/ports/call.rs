//! What a role can do on chain, and what becomes of it.

use serde::{Deserialize, Serialize};
use tensorlink_proof::challenge::Move;
use tensorlink_proof::fraud::ElementProof;
use tensorlink_types::abi::{
    AuditAnswer, AuditedClaim, BoundaryLogs, Claim, ClaimLink, ContradictionProof, Delivery, Demand, EquivocationProof,
    Holder, JobTerms, Offer, Part, ProgramHeader, StepStatement, Voucher, WiringProof,
};
use tensorlink_types::{Address, B256, Bytes, JobId, Lane, U256};

use super::event::Event;
use super::role::Role;

/// A state-changing call. Allowances and permits that it needs are the adapter's business.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub enum Call {
    Stake {
        role: Role,
        amount: U256,
    },
    RequestUnstake {
        role: Role,
        amount: U256,
    },
    WithdrawStake {
        role: Role,
    },
    Post {
        terms: JobTerms,
        deposit: U256,
    },
    Accept {
        job: JobId,
        offers: Vec<Offer>,
        signatures: Vec<Bytes>,
    },
    Start {
        job: JobId,
    },
    Cancel {
        job: JobId,
    },
    Settle {
        job: JobId,
    },
    Collect {
        token: Address,
    },
    /// What challenges have credited, wei of ETH.
    CollectGas,
    Commit {
        claim: Claim,
        previous: ClaimLink,
    },
    Seal {
        lane: Lane,
        interval: u32,
        seal: B256,
    },
    Reveal {
        claim: Claim,
        previous: ClaimLink,
        salt: B256,
    },
    Finalize {
        claims: Vec<(Claim, u64)>,
        /// Who else has the state that the last of them ends in.
        holder: Holder,
    },
    Redeem {
        voucher: Voucher,
        signature: Bytes,
    },
    Prove(Box<ElementProof>),
    ProveWiring(Box<WiringProof>),
    ProveContradiction(Box<ContradictionProof>),
    ProveEquivocation(Box<EquivocationProof>),
    Audit(Box<AuditMove>),
    Custody(Box<CustodyMove>),
    /// A move in a challenge; those that open one have no number yet, and name 0.
    Challenge {
        challenge: U256,
        step: Box<Move>,
    },
}

impl Call {
    /// Whether money is lost, by this account or by who pays for the work, if the call is not made in time: answers and
    /// moves that a clock waits for, challenges before a claim is final, claims and what is earned by them, proofs
    /// while they convict, and the end of what goes on costing. The rest can be done another day.
    pub fn averts_loss(&self) -> bool {
        match self {
            Self::Commit { .. }
            | Self::Seal { .. }
            | Self::Reveal { .. }
            | Self::Redeem { .. }
            | Self::Cancel { .. }
            | Self::Prove(_)
            | Self::ProveWiring(_)
            | Self::ProveContradiction(_)
            | Self::ProveEquivocation(_) => true,
            Self::Stake { .. }
            | Self::RequestUnstake { .. }
            | Self::WithdrawStake { .. }
            | Self::Post { .. }
            | Self::Accept { .. }
            | Self::Start { .. }
            | Self::Settle { .. }
            | Self::Collect { .. }
            | Self::CollectGas
            | Self::Finalize { .. } => false,
            Self::Audit(step) => {
                matches!(
                    **step,
                    AuditMove::Commit { .. } | AuditMove::Reveal { .. } | AuditMove::RevealConfirmed { .. }
                )
            }
            Self::Custody(step) => matches!(**step, CustodyMove::Deliver { .. } | CustodyMove::DeliverSent { .. }),
            // A claim is final, and paid for, once the time in which it can be challenged is over. Who does not answer
            // can be convicted on any later day.
            Self::Challenge { step, .. } => !matches!(**step, Move::Timeout),
        }
    }
}

/// What is done about data that is withheld.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub enum CustodyMove {
    DemandState {
        claim: Claim,
        committed_at: u64,
        program: ProgramHeader,
        holder: Holder,
        part: Part,
    },
    /// Of what a claim says was sent to the next stage, or else to the previous one.
    DemandSent {
        claim: Claim,
        committed_at: u64,
        program: ProgramHeader,
        to_next: bool,
        part: Part,
    },
    DemandFiles {
        lane: Lane,
        program: ProgramHeader,
        /// The stage's constants, or else its initial state.
        constants: bool,
        part: Part,
    },
    Deliver {
        id: U256,
        demand: Demand,
        delivery: Delivery,
    },
    /// With the logs of the claim, and the worker's signature of the one that the demand is about.
    DeliverSent {
        id: U256,
        demand: Demand,
        delivery: Delivery,
        logs: BoundaryLogs,
        signature: Bytes,
    },
    Expire {
        id: U256,
        demand: Demand,
    },
}

/// What is done about an audit that the chain has drawn.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub enum AuditMove {
    /// Records the seed of a period, by the headers of [`Seed`](super::chain::Seed).
    Record {
        period: u64,
        before: Bytes,
        header: Bytes,
    },
    Commit {
        audited: AuditedClaim,
        sealed: B256,
    },
    Reveal {
        audited: AuditedClaim,
        answer: AuditAnswer,
        salt: B256,
    },
    /// Of a receipt, with its worker's statement that says the same.
    RevealConfirmed {
        audited: AuditedClaim,
        statement: StepStatement,
        signature: Bytes,
        salt: B256,
    },
    /// An answer that was missed, or that no worker confirms: nobody pays for it.
    RevealUnpaid {
        claim: Claim,
        answer: AuditAnswer,
        salt: B256,
    },
    /// An answer that was sealed and is lost: it costs what a wrong one does.
    Forfeit {
        claim: Claim,
    },
    /// An auditor's share of a convicted lane's bounty.
    PayShare {
        claim: Claim,
        auditor: Address,
    },
    Accuse {
        audited: AuditedClaim,
        auditor: Address,
        statement: StepStatement,
        signature: Bytes,
    },
    Penalise {
        claim: Claim,
        auditor: Address,
    },
    PenaliseCopy {
        proof: Box<ElementProof>,
        auditor: Address,
    },
}

/// A mined, successful call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Receipt {
    /// Transaction hash.
    pub transaction: B256,
    /// Block it was mined in.
    pub block: u64,
    /// Gas used.
    pub gas: u64,
    /// Events it caused in our contracts, not yet confirmed.
    pub events: Vec<Event>,
}

/// A mined transaction: who paid for it, how much, and what it proves.
#[derive(Clone, PartialEq, Debug)]
pub struct Mined {
    /// Who sent it, and paid.
    pub sender: Address,
    /// Gas used.
    pub gas: u64,
    /// Wei of ETH paid for that gas.
    pub fee: U256,
    /// The proof that it brought to `Disputes`, as the call that sends it; none of any other transaction, nor where
    /// another contract passed the proof on.
    pub proof: Option<Call>,
}
