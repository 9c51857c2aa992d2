//! A challenge: who asks whom, every move, and whose turn it is.

use serde::Serialize;
use tensorlink_proof::challenge::{Subject, Turn};
use tensorlink_types::Address;
use tensorlink_types::abi::Position;

use super::{Named, Sent};
use crate::amount::Wei;

/// Questions that a challenge has at most.
pub const MOST_QUESTIONS: u64 = 32;

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
