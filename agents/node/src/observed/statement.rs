//! What a user signs about a worker.

use alloy_sol_types::{SolStruct, sol};
use serde::{Deserialize, Serialize};
use tensorlink_model::Setting;
use tensorlink_proof::commit::sign::{SIGNATURE_BYTES, SignatureError, verify_signer};
use tensorlink_types::abi::domain;
use tensorlink_types::{Address, B256, JobId};
use thiserror::Error;

use crate::identity::Identity;
use crate::ports::chain::Deployment;
use crate::speed::MOST_MULTIPLY_ADDS;

sol! {
    /// How fast a worker was in a job, as the job's user saw it. EIP-712, domain of `Jobs`.
    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct WorkerSpeed {
        /// Id of the job.
        uint64 job;
        /// The worker.
        address worker;
        /// In how many bits the model is computed: 0 fast, 1 standard, 2 reference.
        uint8 setting;
        /// Multiply-adds a second that it would have to advertise to be as good as its word as others are.
        uint64 multiplyAdds;
        /// When it was measured, seconds since 1970.
        uint64 at;
    }
}

/// A speed, signed by the user of its job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SignedSpeed {
    speed: WorkerSpeed,
    #[serde(with = "serde_bytes")]
    signature: Vec<u8>,
}

/// A statement that nobody need look at. Take no notice of it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Unfounded {
    /// The setting has no such number, or no worker is as fast.
    #[error("it says what cannot be")]
    Impossible,
    /// The user of the job did not sign it.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The worker was paid nothing in that job, as far as is known here.
    #[error("nothing was paid for it")]
    Unpaid,
    /// It is from the future, or of long ago.
    #[error("it is not of the last two weeks")]
    Untimely,
    /// As much is known already, or as many others are.
    #[error("nothing new, or no room for it")]
    NoRoom,
}

impl SignedSpeed {
    /// Signs that a worker was so fast in a job: multiply-adds a second in a setting, at a time in seconds since 1970.
    ///
    /// # Errors
    /// [`Unfounded`] for a speed that no worker has.
    pub fn new(
        (user, deployment): (&Identity, &Deployment),
        (job, worker): (JobId, Address),
        (setting, multiply_adds): (Setting, u64),
        at: u64,
    ) -> Result<Self, Unfounded> {
        let setting = Setting::ALL.iter().position(|known| *known == setting).unwrap_or_default();
        let setting = u8::try_from(setting).unwrap_or_default();
        let speed = WorkerSpeed { job: job.0, worker, setting, multiplyAdds: multiply_adds, at };
        let signature = user.sign(digest(&speed, deployment))?.to_vec();
        let signed = Self { speed, signature };
        if signed.is_possible() { Ok(signed) } else { Err(Unfounded::Impossible) }
    }

    /// The job.
    pub const fn job(&self) -> JobId {
        JobId(self.speed.job)
    }

    /// The worker.
    pub const fn worker(&self) -> Address {
        self.speed.worker
    }

    /// In how many bits the model is computed; none of a number that no setting has.
    pub fn setting(&self) -> Option<Setting> {
        Setting::ALL.get(usize::from(self.speed.setting)).copied()
    }

    /// Multiply-adds a second that the worker would have to advertise to be as good as its word as others are.
    pub const fn multiply_adds(&self) -> u64 {
        self.speed.multiplyAdds
    }

    /// When it was measured, seconds since 1970.
    pub const fn at(&self) -> u64 {
        self.speed.at
    }

    /// Whether it says what can be, whoever signed it.
    pub fn is_possible(&self) -> bool {
        self.setting().is_some()
            && (1..=MOST_MULTIPLY_ADDS).contains(&self.multiply_adds())
            && self.signature.len() == SIGNATURE_BYTES
    }

    /// Whether this user signed it, for contracts of this deployment.
    ///
    /// # Errors
    /// [`Unfounded::Signature`].
    pub fn check(&self, user: Address, deployment: &Deployment) -> Result<(), Unfounded> {
        Ok(verify_signer(&self.signature, digest(&self.speed, deployment), user)?)
    }
}

fn digest(speed: &WorkerSpeed, deployment: &Deployment) -> B256 {
    speed.eip712_signing_hash(&domain(deployment.chain_id, deployment.jobs))
}
