//! A conviction: what the proof shows to be wrong, and what was taken for it.

use serde::Serialize;
use tensorlink_node::ports::chain::Fault;
use tensorlink_types::{Address, B256, ClaimId, Opcode, Source, TensorType};

use super::{Named, Sent};
use crate::amount::Wei;

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
