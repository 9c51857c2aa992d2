//! Newtypes for everything that is named by a number or a hash.

use std::fmt;

use alloy_primitives::B256;
use serde::{Deserialize, Serialize};

/// A job's number, assigned by the `Jobs` contract in order of posting, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One seat in a job: a pipeline stage of one replica, held by one worker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Lane {
    /// The job.
    pub job: JobId,
    /// Position in the pipeline, from 0.
    pub stage: u16,
    /// Which copy of the pipeline, from 0 (a job of security level k has k).
    pub replica: u16,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {} stage {} replica {}", self.job, self.stage, self.replica)
    }
}

macro_rules! hash_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub B256);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<B256> for $name {
            fn from(hash: B256) -> Self {
                Self(hash)
            }
        }

        impl From<$name> for B256 {
            fn from(hash: $name) -> Self {
                hash.0
            }
        }
    };
}

hash_newtype!(
    /// EIP-712 digest of a [`crate::abi::Claim`]: names the claim on every chain and contract.
    ClaimId
);
hash_newtype!(
    /// Commitment of one tensor: its type and the Merkle root of its bytes (rule C-2 of the proof crate).
    TensorRoot
);
/// What jobs that continue each other share: the key of their draws, and one count of steps (rules C-10 and P-38).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Lineage {
    /// Keys every draw.
    pub key: JobKey,
    /// Steps before the job's own.
    pub first_step: u32,
}

impl From<JobKey> for Lineage {
    /// Of a job that continues none.
    fn from(key: JobKey) -> Self {
        Self { key, first_step: 0 }
    }
}

hash_newtype!(
    /// The beacon value of a job, fixed when it starts; keys every pseudo-random draw (rule N-4).
    JobKey
);
