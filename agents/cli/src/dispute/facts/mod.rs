//! What is known of a dispute: plain data, of which the texts are made and which `--json` prints.
//!
//! | module | what lives there |
//! |---|---|
//! | here | a dispute, and the claim that it is about |
//! | `challenge` | challenges: moves, clocks, whose turn it is |
//! | `conviction` | convictions: what was wrong, and what was taken |

mod challenge;
mod conviction;

use serde::{Serialize, Serializer};
use tensorlink_types::abi::{Claim, JobKind};
use tensorlink_types::{Address, B256, ClaimId};

use crate::amount::Wei;

pub use challenge::{Challenge, Clocks, Deed, MOST_QUESTIONS, Move, Question, Side, Waiting};
pub use conviction::{Clash, Conviction, Element, Equivocation, Found, Operand, Sink, Slash, Wiring};

/// A transaction: when it was mined, and what it cost whom.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Sent {
    /// Its hash.
    pub transaction: B256,
    /// Height of its block.
    pub block: u64,
    /// Timestamp of its block, seconds.
    pub time: u64,
    /// None as long as it was not asked for, or where the endpoint does not remember it.
    pub cost: Option<Cost>,
}

/// What a transaction cost.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Who sent and paid it.
    pub sender: Address,
    /// Gas used.
    pub gas: u64,
    /// Wei of ETH paid for the gas.
    pub fee: Wei,
}

/// One claim, who doubted it, and what came of it.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Dispute {
    /// Block time that counts as now, seconds.
    pub now: u64,
    /// What it is about.
    pub claimed: Claimed,
    /// The challenge that was asked for, or all of the claim's.
    pub challenges: Vec<Challenge>,
    /// The conviction over this claim, or the one over an earlier claim of its lane that made it void.
    pub conviction: Option<Conviction>,
    /// Why operators and tensors have no names here, if names were looked for and not found.
    pub nameless: Option<String>,
}

/// A claim, as it was made.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Claimed {
    /// Its id.
    pub id: ClaimId,
    /// Who made it.
    pub worker: Address,
    /// What it says; none of a receipt whose proof cannot be read.
    #[serde(serialize_with = "claim_fields")]
    pub claim: Option<Claim>,
    /// What its job's terms say.
    pub terms: Option<Terms>,
    /// When it was committed; receipts are not.
    pub committed: Option<Sent>,
    /// Where it stands.
    pub standing: Standing,
}

/// A claim by names like all others, not by the contracts'.
fn claim_fields<S: Serializer>(claim: &Option<Claim>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Fields {
        job: u64,
        stage: u16,
        replica: u16,
        interval: u32,
        parent_state: B256,
        new_state: B256,
        io: B256,
    }
    let fields = claim.as_ref().map(|claim| Fields {
        job: claim.job,
        stage: claim.stage,
        replica: claim.replica,
        interval: claim.interval,
        parent_state: claim.parentState,
        new_state: claim.newState,
        io: claim.io,
    });
    fields.serialize(serializer)
}

/// What a job's terms say that matters in a dispute.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Terms {
    /// Who pays for the job.
    pub user: Address,
    /// What its lanes do.
    pub kind: JobKind,
    /// Steps of a claim; of a serving job, the most tokens of a text.
    pub steps_per_interval: u32,
    /// Seconds in which the claim can be challenged: twice those of the terms where replicas differ.
    pub challenge_window: u64,
    /// Wei of SNO that a lane has at risk.
    pub stake: Wei,
}

/// Where a claim stands.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// On record, neither final nor void.
    Live,
    /// Final, and paid.
    Final,
    /// Void, by a conviction.
    Void,
    /// A receipt: it has no record.
    Receipt,
}

/// Something of a program by its index, and what the model calls it.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Place in its list.
    pub index: u32,
    /// Name in the model, where it could be had.
    pub name: Option<String>,
}
