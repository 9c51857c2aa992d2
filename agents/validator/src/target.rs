//! A claim that is looked into, and how it binds its worker.

use cid::Cid;
use tensorlink_proof::commit::Contracts;
use tensorlink_types::abi::{AuditedClaim, Claim};
use tensorlink_types::{B256, ClaimId};

/// A claim.
#[derive(Clone, PartialEq, Debug)]
pub struct Target {
    /// Its id.
    pub id: ClaimId,
    /// The claim.
    pub claim: Claim,
    /// How it binds its worker.
    pub standing: Standing,
    /// CID of the job's manifest.
    pub manifest: Cid,
    /// Of a receipt: where it stands on chain.
    pub listed: Option<Listed>,
}

/// A receipt's place in the list of a redeemed epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The epoch.
    pub epoch: u32,
    /// When it was redeemed, seconds.
    pub redeemed_at: u64,
    /// Root of its list.
    pub receipts: B256,
    /// The receipt's index in it.
    pub index: u32,
    /// And its path there.
    pub siblings: Vec<B256>,
}

impl Target {
    /// A receipt that its user holds, of a job with this manifest. Its id follows from the claim.
    pub fn of_receipt(contracts: &Contracts, claim: Claim, manifest: Cid) -> Self {
        Self { id: contracts.claim_id(&claim), claim, standing: Standing::Receipt, manifest, listed: None }
    }

    /// As the chain draws for it: the claim since when it is fixed. None of a receipt that no redeemed epoch lists.
    pub fn audited(&self) -> Option<AuditedClaim> {
        let claim = self.claim.clone();
        match (self.standing, self.listed.clone()) {
            (Standing::Committed { at }, _) => Some(AuditedClaim { claim, fixedAt: at, ..AuditedClaim::default() }),
            (Standing::Receipt, Some(listed)) => {
                let Listed { epoch, redeemed_at, receipts, index, siblings } = listed;
                Some(AuditedClaim { claim, fixedAt: redeemed_at, epoch, receipts, index, siblings })
            }
            (Standing::Receipt, None) => None,
        }
    }

    /// Since when it is fixed.
    pub fn fixed_at(&self) -> Option<u64> {
        match self.standing {
            Standing::Committed { at } => Some(at),
            Standing::Receipt => self.listed.as_ref().map(|listed| listed.redeemed_at),
        }
    }
}

/// How a claim binds its worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It is on chain.
    Committed {
        /// Timestamp of its block.
        at: u64,
    },
    /// It is a receipt of a serving job (rule C-12).
    Receipt,
}
