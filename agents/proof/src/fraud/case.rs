//! What the chain knows about a claim, for both kinds of job.

use alloy_primitives::{Address, B256};
use tensorlink_types::Lineage;
use tensorlink_types::abi::Claim;

use crate::commit::Contracts;

/// What the chain knows about a claim: everything that a proof is checked against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Chain and contracts.
    pub contracts: Contracts,
    /// The lane's worker.
    pub worker: Address,
    /// What keys the job's draws, and where its steps begin.
    pub lineage: Lineage,
    /// The kind of job, and what depends on it.
    pub work: Work,
}

/// What the lane's claims are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Intervals of steps; claims are on record.
    Training {
        /// From the job's terms.
        steps_per_interval: u32,
        /// Program root of the lane's stage.
        program: B256,
        /// The claim's record (C-11).
        record: B256,
    },
    /// Texts; claims are receipts (C-12), which no record is kept of. That the job is not settled yet, so that they are
    /// live, is for the caller to see to.
    Serving {
        /// Most tokens of a text: `stepsPerInterval` of the job's terms.
        longest: u32,
        /// List root of the stage's programs by length (C-13).
        programs: B256,
    },
}

impl Work {
    /// Steps that a claim is about, and its logs hold.
    pub const fn steps(&self) -> u32 {
        match self {
            Self::Training { steps_per_interval, .. } => *steps_per_interval,
            Self::Serving { .. } => 1,
        }
    }

    /// Whether a statement about a claim may name this step: one of its interval, or a number of tokens.
    pub const fn holds(&self, claim: &Claim, step: u32) -> bool {
        match self {
            Self::Training { steps_per_interval, .. } => {
                matches!(step.checked_div(*steps_per_interval), Some(interval) if interval == claim.interval)
            }
            Self::Serving { longest, .. } => 1 <= step && step <= *longest,
        }
    }

    /// A step counted from its claim's first.
    pub const fn local_step(&self, step: u32) -> u32 {
        match self {
            Self::Training { steps_per_interval, .. } => match step.checked_rem(*steps_per_interval) {
                Some(local) => local,
                None => 0,
            },
            Self::Serving { .. } => 0,
        }
    }
}
