//! What goes on beside challenges: data demanded of who has to hold it, and auditors penalised for wrong answers.

use std::collections::BTreeMap;

use serde::Serialize;
use tensorlink_node::ports::{Event, EventAt};
use tensorlink_types::abi::{self, DemandKind};
use tensorlink_types::{Address, ClaimId, JobId, Lane, U256};

use super::facts::Sent;
use crate::amount::Wei;

/// A part of some data that was demanded on chain of who has to hold it.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Demand {
    /// Its number.
    pub number: u64,
    /// Of what.
    pub of: Data,
    /// Tensor of the list that it is of.
    pub tensor: u32,
    /// The claim that it is about; none where it is about a stage's files.
    pub claim: Option<ClaimId>,
    /// The lane of that claim, or of who holds the files.
    pub lane: Lane,
    /// The interval of that claim.
    pub interval: Option<u32>,
    /// Who has to show it.
    pub holder: Address,
    /// Who put up a bond for it.
    pub demander: Address,
    /// What came of it.
    pub outcome: Outcome,
    /// The demand.
    pub sent: Sent,
    /// Its end.
    pub ended: Option<Sent>,
}

/// What data a demand is of.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// The state that a claim ends in.
    State,
    /// A stage's constants or initial state.
    Files,
    /// What a claim says was sent to the previous stage.
    SentToPrevious,
    /// What a claim says was sent to the next stage.
    SentToNext,
}

/// What came of a demand.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing yet.
    Open {
        /// Last time for it, seconds.
        deadline: u64,
        /// Block before which it is not too late, whatever the time.
        block: u64,
    },
    /// The holder showed it.
    Shown,
    /// The holder did not, and was convicted.
    NotShown,
    /// It was about nothing any more.
    Lapsed,
}

/// What a validator lost for an answer that was wrong.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Penalty {
    /// The claim that it answered for.
    pub claim: ClaimId,
    /// The validator.
    pub auditor: Address,
    /// Who gets a share of it.
    pub accuser: Address,
    /// Wei of SNO.
    pub amount: Wei,
    /// The transaction.
    pub sent: Sent,
}

/// Demands by their numbers, and penalties in their order.
#[derive(Clone, Debug, Default)]
pub struct Aside {
    demands: BTreeMap<U256, Demand>,
    penalties: Vec<Penalty>,
}

impl Aside {
    /// Takes in an event, if it is of these.
    pub(super) fn apply(&mut self, at: &EventAt) {
        let sent = || Sent { transaction: at.transaction, block: at.block, time: at.timestamp, cost: None };
        match &at.event {
            Event::Demanded { id, demand } => {
                if let Some(demand) = read(*id, demand, sent()) {
                    self.demands.insert(*id, demand);
                }
            }
            Event::DemandEnded { id, shown, convicted } => {
                if let Some(demand) = self.demands.get_mut(id) {
                    demand.outcome = match (shown, convicted) {
                        (Some(_), _) => Outcome::Shown,
                        (None, true) => Outcome::NotShown,
                        (None, false) => Outcome::Lapsed,
                    };
                    demand.ended = Some(sent());
                }
            }
            Event::AuditorPenalised { claim, auditor, accuser, amount } => self.penalties.push(Penalty {
                claim: *claim,
                auditor: *auditor,
                accuser: *accuser,
                amount: Wei(*amount),
                sent: sent(),
            }),
            _ => {}
        }
    }

    /// Every demand, oldest first.
    pub fn demands(&self) -> impl Iterator<Item = &Demand> {
        self.demands.values()
    }

    /// Every penalty, oldest first.
    pub fn penalties(&self) -> &[Penalty] {
        &self.penalties
    }
}

/// None of a kind that this version does not know.
fn read(number: U256, demand: &abi::Demand, sent: Sent) -> Option<Demand> {
    let of = match DemandKind::from_number(demand.kind)? {
        DemandKind::State => Data::State,
        DemandKind::Files => Data::Files,
        DemandKind::SentToPrevious => Data::SentToPrevious,
        DemandKind::SentToNext => Data::SentToNext,
    };
    let about = (!demand.claimId.is_zero()).then_some((ClaimId(demand.claimId), demand.interval));
    let (claim, interval) = about.unzip();
    Some(Demand {
        number: number.saturating_to(),
        of,
        tensor: demand.part.tensor,
        claim,
        lane: Lane { job: JobId(demand.job), stage: demand.stage, replica: demand.replica },
        interval,
        holder: demand.holder,
        demander: demand.demander,
        outcome: Outcome::Open { deadline: demand.deadline.to(), block: demand.untilBlock.to() },
        sent,
        ended: None,
    })
}
