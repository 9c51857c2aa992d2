//! A line for each challenge and each conviction.

use serde::Serialize;
use tensorlink_node::ports::chain::Fault;
use tensorlink_types::{Address, B256, ClaimId, Lane};

use super::challenge::turn;
use super::show::state;
use crate::amount::Wei;
use crate::dispute::facts::{Challenge, Claimed, Conviction, MOST_QUESTIONS, Waiting};

/// A challenge or a conviction, as a list has it.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Row {
    /// Claim that it is about.
    pub claim: ClaimId,
    /// Whose claim it is, where that is known.
    #[serde(flatten)]
    pub lane: Option<Lane>,
    /// Of which interval, or text.
    pub interval: Option<u32>,
    /// Who claimed.
    pub worker: Address,
    /// Which of the two it is.
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
        Self::of(
            claimed,
            What::Conviction {
                auditor: conviction.auditor,
                fault: conviction.fault,
                transaction: conviction.sent.transaction,
                slashed: conviction.slash.map_or_else(Wei::default, |slash| slash.amount),
            },
        )
    }

    fn of(claimed: &Claimed, what: What) -> Self {
        let claim = claimed.claim.as_ref();
        let (lane, interval) = claim.map(|claim| (claim.lane(), claim.interval)).unzip();
        Self { claim: claimed.id, lane, interval, worker: claimed.worker, what }
    }

    /// For people.
    pub fn text(&self) -> String {
        let place = self.lane.zip(self.interval);
        let place =
            place.map_or_else(|| "receipt".to_owned(), |(lane, interval)| format!("{lane} interval {interval}"));
        let about = format!("{place}, worker {}", self.worker);
        match &self.what {
            What::Challenge { challenge, challenger, state, questions, waiting } => {
                let turn = waiting.as_ref().map_or_else(String::new, |waiting| format!(", {}", turn(waiting)));
                format!(
                    "challenge {challenge:<4} {state:<5} {about}, challenger {challenger}, question {questions} of \
                     {MOST_QUESTIONS}{turn}; claim {}",
                    self.claim
                )
            }
            What::Conviction { auditor, fault, transaction, slashed } => {
                let fault = format!("{fault:?}").to_lowercase();
                format!(
                    "conviction     {about}, auditor {auditor}, {fault}, {slashed} SNO slashed in {transaction}; claim {}",
                    self.claim
                )
            }
        }
    }
}
