//! EIP-712 digests (C-9), claim records (C-11), job keys (C-10), seals (C-14).

use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_sol_types::{SolStruct, SolValue};
use tensorlink_types::abi::{Claim, ClaimLink, EdgeLog, Holding, Offer, StepStatement, Voucher, domain};
use tensorlink_types::{ClaimId, JobId, JobKey};

/// The deployment that signatures are bound to: chain and contracts, so that none is valid elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contracts {
    /// EIP-155 id.
    pub chain_id: u64,
    /// `Jobs`, domain of offers.
    pub jobs: Address,
    /// `Checkpoints`, domain of claims.
    pub checkpoints: Address,
    /// `Channels`, domain of vouchers.
    pub channels: Address,
    /// `Disputes`, domain of step statements and signed boundary logs.
    pub disputes: Address,
    /// `Custody`, domain of holders' attestations.
    pub custody: Address,
}

impl Contracts {
    /// What a worker signs to bind itself to a lane.
    pub fn offer(&self, offer: &Offer) -> B256 {
        offer.eip712_signing_hash(&domain(self.chain_id, self.jobs))
    }

    /// A claim's id.
    pub fn claim_id(&self, claim: &Claim) -> ClaimId {
        ClaimId(claim.eip712_signing_hash(&domain(self.chain_id, self.checkpoints)))
    }

    /// What a worker signs to answer an auditor.
    pub fn statement(&self, statement: &StepStatement) -> B256 {
        statement.eip712_signing_hash(&domain(self.chain_id, self.disputes))
    }

    /// What a user signs to pay a lane.
    pub fn voucher(&self, voucher: &Voucher) -> B256 {
        voucher.eip712_signing_hash(&domain(self.chain_id, self.channels))
    }

    /// What a holder signs to say that it has the state a claim ends in (C-16).
    pub fn holding(&self, claim: ClaimId) -> B256 {
        Holding { claimId: claim.0 }.eip712_signing_hash(&domain(self.chain_id, self.custody))
    }

    /// What a worker signs about the tensors it sent to a neighbour.
    pub fn edge_log(&self, log: &EdgeLog) -> B256 {
        log.eip712_signing_hash(&domain(self.chain_id, self.disputes))
    }
}

/// What the chain stores of a claim (C-11): its interval, then what is left of the hash.
pub fn record_hash(claim: &Claim, committed_at: u64) -> B256 {
    let hash = U256::from_be_bytes(keccak256((claim.clone(), committed_at).abi_encode_params()).0);
    let tag: U256 = U256::from(claim.interval) << 224;
    B256::from(tag | (hash << 32) >> 32)
}

/// The part of a claim's record that its successor quotes.
pub const fn link(claim: &Claim, committed_at: u64) -> ClaimLink {
    ClaimLink { parentState: claim.parentState, io: claim.io, committedAt: committed_at }
}

/// What a replica shows of a claim before it reveals it (C-14). Nobody else may know the salt.
pub fn seal(claim: ClaimId, salt: B256) -> B256 {
    keccak256((claim.0, salt).abi_encode_params())
}

/// Key of a job's pseudo-random draws (C-10).
pub fn job_key(prevrandao: B256, job: JobId) -> JobKey {
    JobKey(keccak256((U256::from_be_bytes(prevrandao.0), job.0).abi_encode_params()))
}
