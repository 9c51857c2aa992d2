//! What is known of a dispute: plain data, of which the texts are made and which `--json` prints.

use serde::{Serialize, Serializer};
use tensorlink_node::ports::chain::Fault;
use tensorlink_proof::challenge::{Subject, Turn};
use tensorlink_types::abi::{Claim, JobKind, Position};
use tensorlink_types::{Address, B256, ClaimId, Opcode, Source, TensorType};

use crate::amount::Wei;

/// Questions that a challenge has at most.
pub const MOST_QUESTIONS: u64 = 32;

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

/// A side of a challenge.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Asks.
    Challenger,
    /// Answers.
    Worker,
}

/// A challenge, with all its moves.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Challenge {
    /// Its number.
    pub number: u64,
    /// Who asks.
    pub challenger: Address,
    /// Who answers.
    pub worker: Address,
    /// Wei of SNO that the challenger put up for the delay.
    pub bond: Wei,
    /// Wei of ETH that were put up for the worker's gas.
    pub deposit: Wei,
    /// Wei of ETH that the worker's answers have cost, of the deposit.
    pub owed: Wei,
    /// Whose turn it is, or how it ended.
    pub state: Turn,
    /// Questions so far, of [`MOST_QUESTIONS`].
    pub questions: u64,
    /// Where it stands, if it is under way.
    pub waiting: Option<Waiting>,
    /// Every move, in order.
    pub moves: Vec<Move>,
}

/// Who has to move, and by when. Both the time and the block must come before it is too late.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Waiting {
    /// Who.
    pub side: Side,
    /// Last time of the move, seconds.
    pub deadline: u64,
    /// Seconds until then.
    pub seconds_left: u64,
    /// Block before which it is not too late, whatever the time.
    pub block: u64,
    /// Blocks until then.
    pub blocks_left: u64,
    /// What was asked last.
    pub question: Question,
    /// The claim is void: there is nothing to play for any more.
    pub void: bool,
}

impl Waiting {
    /// Whether it is too late to move.
    pub const fn is_over(&self) -> bool {
        self.seconds_left == 0 && self.blocks_left == 0
    }
}

/// What a worker is asked for.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Question {
    /// Kind of thing.
    pub subject: Subject,
    /// Which part of its tree.
    pub position: Position,
    /// Step that it is about, counted from the job's first; none as long as it is about the whole claim.
    pub step: Option<u32>,
    /// Operator whose output it is about, and its name.
    pub operator: Option<Named>,
}

/// Something of a program by its index, and what the model calls it.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Place in its list.
    pub index: u32,
    /// Name in the model, where it could be had.
    pub name: Option<String>,
}

/// A move in a challenge.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Move {
    /// What was done.
    #[serde(flatten)]
    pub deed: Deed,
    /// Its transaction.
    #[serde(flatten)]
    pub sent: Sent,
    /// Seconds left after it.
    pub clocks: Clocks,
}

/// What a move does.
#[derive(Serialize, Clone, PartialEq, Debug)]
#[serde(tag = "deed", rename_all = "snake_case")]
pub enum Deed {
    /// The challenger asks; first by opening the challenge.
    Asked {
        /// For what.
        question: Question,
        /// By when the worker has to answer, seconds.
        deadline: u64,
    },
    /// The worker answers what was asked last.
    Answered {
        /// What was asked.
        question: Question,
        /// Bytes of nodes, entries and leaves.
        bytes: u64,
        /// Gas that the deposit is charged for it.
        charged: Option<u64>,
        /// By when the challenger has to go on, seconds.
        deadline: u64,
    },
    /// Anybody ends it: the worker was silent, or its claim is void.
    Won {
        /// It was convicted of silence by this.
        silence: bool,
    },
    /// Anybody ends it: the challenger did not go on.
    Lost,
}

/// What both clocks show, seconds. A move has the clock of its side, and never less than the grace.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clocks {
    /// The challenger's.
    pub challenger: u64,
    /// The worker's.
    pub worker: u64,
}

/// A conviction.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Conviction {
    /// Of which claim.
    pub claim: ClaimId,
    /// Interval of that claim, or number of the text, where it is known.
    pub interval: Option<u32>,
    /// Who lied, or was silent.
    pub worker: Address,
    /// To whom the bounty goes.
    pub auditor: Address,
    /// What kind of wrong it was.
    pub fault: Fault,
    /// Step of the job; of a receipt, number of tokens.
    pub step: u32,
    /// Operator of the step's program.
    pub operator: u32,
    /// Flat index in its output; for a wiring, the entry of the sink.
    pub element: u64,
    /// What the worker's trace holds, an integer.
    pub claimed: String,
    /// What the contract computed, an integer.
    pub recomputed: String,
    /// The convicting transaction.
    pub sent: Sent,
    /// What was taken; none if the lane's stake had been taken before.
    pub slash: Option<Slash>,
    /// What the proof shows; none where there is no proof, or it cannot be read.
    pub found: Option<Found>,
}

/// What was taken of a stake, wei of SNO.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Slash {
    /// All of it.
    pub amount: Wei,
    /// To the auditor that found it.
    pub bounty: Wei,
    /// To auditors that had sealed answers about the lane.
    pub shared: Wei,
    /// To the job's user.
    pub harm: Wei,
    /// To nobody.
    pub burned: Wei,
}

/// What a proof shows.
#[derive(Serialize, Clone, PartialEq, Debug)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Found {
    /// One element is wrong.
    Element(Element),
    /// An output is not where it belongs.
    Wiring(Wiring),
    /// Statements that cannot be true.
    Contradiction(Clash),
    /// One list of tensors signed to a neighbour, another claimed.
    Equivocation(Equivocation),
}

/// Two logs of what was sent to one neighbour in one interval.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct Equivocation {
    /// The neighbour's stage.
    pub stage: u16,
    /// The log that was signed to it.
    pub signed: B256,
    /// The log that the claim commits to.
    pub claimed: B256,
}

/// A wrong element.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Element {
    /// Whose output it is of.
    pub operator: Named,
    /// What that operator computes.
    pub opcode: Opcode,
    /// Of what, in order.
    pub operands: Vec<Operand>,
    /// Type of the output.
    pub output: TensorType,
    /// Index along each dimension; none in the zeros behind the tensor's last element.
    pub place: Option<Vec<u64>>,
    /// The numbers that the integers stand for, claimed and recomputed; none where the exponent is 0.
    pub real: Option<(f64, f64)>,
}

/// An operand of an operator.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct Operand {
    /// Where it comes from.
    pub source: Source,
    /// Its name in the model, where it has one and it could be had.
    pub name: Option<String>,
}

/// A wiring that was not kept to.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Wiring {
    /// Whose output it is.
    pub operator: Named,
    /// Where it belongs.
    pub sink: Sink,
    /// Which state tensor, or which micro-batch.
    pub place: Named,
    /// Root of the output, by the signed trace.
    pub traced: B256,
    /// Root of what the worker committed to in its place.
    pub committed: B256,
}

/// Where an output goes.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Sink {
    /// Into the state after the step.
    State,
    /// To the next stage.
    ToNext,
    /// To the previous stage.
    ToPrevious,
}

/// Statements that cannot be true.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(tag = "clash", rename_all = "snake_case")]
pub enum Clash {
    /// The first step does not start where the claim does.
    Start {
        /// By the statement.
        stated: B256,
        /// By the claim.
        claimed: B256,
    },
    /// The last step does not end where the claim does.
    End {
        /// By the statement.
        stated: B256,
        /// By the claim.
        claimed: B256,
    },
    /// One step has two outcomes.
    Outcomes {
        /// State before, state after, trace.
        first: [B256; 3],
        /// As the first.
        second: [B256; 3],
    },
    /// A step does not start where the one before it ended.
    Gap {
        /// Where the one before ended.
        ended: B256,
        /// Where the next started.
        started: B256,
    },
    /// A text has two lengths.
    Lengths {
        /// Tokens, by the first statement.
        first: u32,
        /// Tokens, by the second.
        second: u32,
    },
}
