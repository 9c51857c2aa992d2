//! Which contracts a chain is seen by.

use serde::{Deserialize, Serialize};
use tensorlink_proof::commit::Contracts;
use tensorlink_types::Address;

/// Addresses of a deployment, as `deploy/<chain id>.toml` holds them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub struct Deployment {
    pub chain_id: u64,
    /// First block that can hold an event of these contracts.
    pub block: u64,
    pub sno: Address,
    pub staking: Address,
    pub jobs: Address,
    pub checkpoints: Address,
    pub channels: Address,
    pub disputes: Address,
    pub challenges: Address,
    pub custody: Address,
    pub audits: Address,
    pub beacon: Address,
    pub step_verifier: Address,
}

impl Deployment {
    /// Of no contracts: for a chain that is played.
    pub const fn nowhere(chain_id: u64) -> Self {
        let zero = Address::ZERO;
        Self {
            chain_id,
            block: 0,
            sno: zero,
            staking: zero,
            jobs: zero,
            checkpoints: zero,
            channels: zero,
            disputes: zero,
            challenges: zero,
            custody: zero,
            audits: zero,
            beacon: zero,
            step_verifier: zero,
        }
    }

    /// Those that something is signed for.
    pub const fn contracts(&self) -> Contracts {
        Contracts {
            chain_id: self.chain_id,
            jobs: self.jobs,
            checkpoints: self.checkpoints,
            channels: self.channels,
            disputes: self.disputes,
            custody: self.custody,
        }
    }
}
