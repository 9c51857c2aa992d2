//! A line for each challenge, conviction, demand and penalty.

use serde::Serialize;
use tensorlink_node::ports::chain::Fault;
use tensorlink_types::{Address, B256, ClaimId, Lane};

use super::challenge::turn;
use super::numbers::{count, duration};
use super::show::state;
use crate::amount::Wei;
use crate::dispute::aside::{Data, Demand, Outcome, Penalty};
use crate::dispute::facts::{Challenge, Claimed, Conviction, MOST_QUESTIONS, Waiting};

/// What was challenged, demanded or convicted, as a list has it.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Row {
    /// Claim that it is about; none of a demand for a stage's files.
    pub claim: Option<ClaimId>,
    /// Whose claim it is, or whose files, where that is known.
    #[serde(flatten)]
    pub lane: Option<Lane>,
    /// Of which interval, or text.
    pub interval: Option<u32>,
    /// Who works in that lane, where that is known; of a conviction, who was convicted.
    pub worker: Option<Address>,
    /// Which of them it is.
    #[serde(flatten)]
    pub what: What,
}

/// What a row is about.
#[derive(Serialize, Clone, PartialEq, Debug)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// A challenge.
    Challenge {
        /// Its number.
        challenge: u64,
        /// Who asks.
        challenger: Address,
        /// `open`, `won` or `lost`.
        state: &'static str,
        /// Questions so far.
        questions: u64,
        /// Whose turn it is, and until when.
        waiting: Option<Waiting>,
    },
    /// A conviction.
    Conviction {
        /// To whom the bounty goes.
        auditor: Address,
        /// What kind of wrong it was.
        fault: Fault,
        /// The convicting transaction.
        transaction: B256,
        /// Wei of SNO that were taken.
        slashed: Wei,
    },
    /// A demand for data.
    Demand {
        /// Its number.
        demand: u64,
        /// Of what.
        of: Data,
        /// Tensor of the list that it is of.
        tensor: u32,
        /// Who has to show it.
        holder: Address,
        /// Who demands it.
        demander: Address,
        /// What came of it.
        #[serde(flatten)]
        outcome: Outcome,
        /// What the holder has left, while it is open.
        #[serde(flatten)]
        left: Option<Left>,
    },
    /// A penalty of an auditor.
    Penalty {
        /// Who answered wrong.
        auditor: Address,
        /// Who gets a share.
        accuser: Address,
        /// The transaction.
        transaction: B256,
        /// Wei of SNO that were taken.
        amount: Wei,
    },
}

/// What somebody has left for a move; both must be over.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Left {
    /// Seconds.
    pub seconds_left: u64,
    /// Blocks.
    pub blocks_left: u64,
}

impl Row {
    /// Of a challenge.
    pub fn challenge(claimed: &Claimed, challenge: &Challenge) -> Self {
        Self::of(
            claimed,
            What::Challenge {
                challenge: challenge.number,
                challenger: challenge.challenger,
                state: state(challenge.state),
                questions: challenge.questions,
                waiting: challenge.waiting.clone(),
            },
        )
    }

    /// Of a conviction.
    pub fn conviction(claimed: &Claimed, conviction: &Conviction) -> Self {
        let what = What::Conviction {
            auditor: conviction.auditor,
            fault: conviction.fault,
            transaction: conviction.sent.transaction,
            slashed: conviction.slash.map_or_else(Wei::default, |slash| slash.amount),
        };
        Self { worker: Some(conviction.worker), ..Self::of(claimed, what) }
    }

    /// Of a demand, at a block and time, about the lane of this worker.
    pub fn demand(demand: &Demand, (block, time): (u64, u64), worker: Option<Address>) -> Self {
        let left = match demand.outcome {
            Outcome::Open { deadline, block: until } => {
                Some(Left { seconds_left: deadline.saturating_sub(time), blocks_left: until.saturating_sub(block) })
            }
            _ => None,
        };
        let what = What::Demand {
            demand: demand.number,
            of: demand.of,
            tensor: demand.tensor,
            holder: demand.holder,
            demander: demand.demander,
            outcome: demand.outcome,
            left,
        };
        Self { claim: demand.claim, lane: Some(demand.lane), interval: demand.interval, worker, what }
    }

    /// Of a penalty, for an answer about a claim that may not be known.
    pub fn penalty(penalty: &Penalty, claimed: Option<&Claimed>) -> Self {
        let Penalty { claim, auditor, accuser, amount, ref sent } = *penalty;
        let what = What::Penalty { auditor, accuser, transaction: sent.transaction, amount };
        match claimed {
            Some(claimed) => Self::of(claimed, what),
            None => Self { claim: Some(claim), lane: None, interval: None, worker: None, what },
        }
    }

    fn of(claimed: &Claimed, what: What) -> Self {
        let claim = claimed.claim.as_ref();
        let (lane, interval) = claim.map(|claim| (claim.lane(), claim.interval)).unzip();
        Self { claim: Some(claimed.id), lane, interval, worker: Some(claimed.worker), what }
    }

    /// For people.
    pub fn text(&self) -> String {
        let place = match (self.lane, self.interval) {
            (Some(lane), Some(interval)) => format!("{lane} interval {interval}"),
            (Some(lane), None) => lane.to_string(),
            (None, _) => "receipt".to_owned(),
        };
        let worker = self.worker.map_or_else(String::new, |worker| format!(", worker {worker}"));
        let (about, claim) = (place + &worker, self.claim.map_or_else(String::new, |id| format!("; claim {id}")));
        match &self.what {
            What::Challenge { challenge, challenger, state, questions, waiting } => {
                let turn = waiting.as_ref().map_or_else(String::new, |waiting| format!(", {}", turn(waiting)));
                format!(
                    "challenge {challenge:<4} {state:<5} {about}, challenger {challenger}, question {questions} of \
                     {MOST_QUESTIONS}{turn}{claim}"
                )
            }
            What::Conviction { auditor, fault, transaction, slashed } => {
                let fault = format!("{fault:?}").to_lowercase();
                format!(
                    "conviction     {about}, auditor {auditor}, {fault}, {slashed} SNO slashed in {transaction}{claim}"
                )
            }
            What::Demand { demand, of, tensor, holder, demander, outcome, left } => {
                let of = match of {
                    Data::State => "its state",
                    Data::Files => "its constants or initial state",
                    Data::SentToPrevious => "what it sent to the previous stage",
                    Data::SentToNext => "what it sent to the next stage",
                };
                let came = match outcome {
                    Outcome::Open { .. } => "open",
                    Outcome::Shown => "shown",
                    Outcome::NotShown => "not shown, and convicted",
                    Outcome::Lapsed => "lapsed",
                };
                let left = match *left {
                    None => String::new(),
                    Some(Left { seconds_left: 0, blocks_left: 0 }) => {
                        ", the holder is late, and anybody can end it".to_owned()
                    }
                    Some(Left { seconds_left, blocks_left }) => {
                        let (time, blocks) = (duration(seconds_left), count(blocks_left, "block"));
                        format!(", the holder has {time} and {blocks} left")
                    }
                };
                format!(
                    "demand    {demand:<4} {came}: {about}, tensor {tensor} of {of}, holder {holder}, demander {demander}{left}{claim}"
                )
            }
            What::Penalty { auditor, accuser, transaction, amount } => {
                format!(
                    "penalty        {about}, auditor {auditor} answered wrong, accuser {accuser}, {amount} SNO taken in \
                     {transaction}{claim}"
                )
            }
        }
    }
}
