//! Signs of life of a job's workers: when each lane was heard of last, by when it must act, and what happens if it
//! stays silent.
//!
//! | module | what lives there |
//! |---|---|
//! | this one | what confirmed events tell of each lane |
//! | [`due`] | the clocks of the contracts, and who may do what once they are over |
//! | [`look`] | the events of one job, looked up from the newest back |

pub mod due;
pub mod look;

use std::collections::BTreeMap;

use serde::Serialize;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Event, EventAt};
use tensorlink_proof::challenge::{Game, Told};
use tensorlink_types::abi::Demand;
use tensorlink_types::{Address, JobId, Lane, U256};

use crate::when;

pub use self::due::{Due, Duty};

/// What a lane was heard of by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Its offer was accepted.
    Accepted,
    /// It sealed a claim.
    Sealed,
    /// It made a claim.
    Claimed,
    /// It redeemed a voucher.
    Redeemed,
    /// It answered a challenge, or showed what was demanded.
    Answered,
    /// Its worker said something to its peers.
    Message,
}

impl Kind {
    const fn words(self) -> &'static str {
        match self {
            Self::Accepted => "its offer was accepted",
            Self::Sealed => "a sealed claim",
            Self::Claimed => "a claim",
            Self::Redeemed => "a voucher redeemed",
            Self::Answered => "an answer on chain",
            Self::Message => "a message",
        }
    }
}

/// A sign of life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Sign {
    /// What was heard.
    pub what: Kind,
    /// When, seconds since 1970.
    pub at: u64,
}

impl Sign {
    /// The later of two; of equals the first.
    #[must_use]
    pub fn or_later(self, other: Option<Self>) -> Self {
        other.filter(|other| other.at > self.at).unwrap_or(self)
    }

    /// `2026-11-26 12:00:05 UTC, 40 s ago (a claim)`.
    pub fn words(&self, now: u64) -> String {
        format!("{} ({})", when::due(self.at, now), self.what.words())
    }
}

/// What is known of a lane.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Heard {
    worker: Address,
    last: Sign,
    /// Claims that it sealed: the number of the next one.
    sealed: u32,
    /// Claims that it made or revealed: the number of the next one.
    claimed: u32,
    /// Whether it was convicted.
    void: bool,
}

/// The seals of one stage and interval, and their reveals: when each began.
#[derive(Clone, Copy, Default, Debug)]
struct Round {
    sealed_at: Option<u64>,
    revealed_at: Option<u64>,
}

/// What confirmed events tell of the lanes of one job; fed in order, from the job's acceptance on.
#[derive(Clone, Debug)]
pub struct Signs {
    job: JobId,
    lanes: BTreeMap<Lane, Heard>,
    rounds: BTreeMap<(u16, u32), Round>,
    games: BTreeMap<U256, Game>,
    demands: BTreeMap<U256, Demand>,
    /// The deadline of a job that has begun.
    deadline: Option<u64>,
    closed_at: Option<u64>,
}

impl Signs {
    /// Nothing is known yet.
    pub const fn new(job: JobId) -> Self {
        Self {
            job,
            lanes: BTreeMap::new(),
            rounds: BTreeMap::new(),
            games: BTreeMap::new(),
            demands: BTreeMap::new(),
            deadline: None,
            closed_at: None,
        }
    }

    /// Takes in an event; those of other jobs change nothing. The lane that it is a sign of life of.
    pub fn take_in(&mut self, at: &EventAt) -> Option<Lane> {
        let (what, lane) = match &at.event {
            Event::JobAccepted { job, offers } if *job == self.job => {
                for offer in offers {
                    let lane = Lane { job: *job, stage: offer.stage, replica: offer.replica };
                    let last = Sign { what: Kind::Accepted, at: at.timestamp };
                    let heard = Heard { worker: offer.worker, last, sealed: 0, claimed: 0, void: false };
                    self.lanes.insert(lane, heard);
                }
                return None;
            }
            Event::ClaimSealed { lane, interval, sealed_at, .. } if lane.job == self.job => {
                self.rounds.entry((lane.stage, *interval)).or_default().sealed_at.get_or_insert(*sealed_at);
                if let Some(heard) = self.lanes.get_mut(lane) {
                    heard.sealed = heard.sealed.max(interval.saturating_add(1));
                }
                (Kind::Sealed, *lane)
            }
            Event::ClaimCommitted { claim, committed_at, .. } if claim.job == self.job.0 => {
                let round = self.rounds.entry((claim.stage, claim.interval)).or_default();
                round.revealed_at.get_or_insert(*committed_at);
                if let Some(heard) = self.lanes.get_mut(&claim.lane()) {
                    heard.claimed = heard.claimed.max(claim.interval.saturating_add(1));
                }
                (Kind::Claimed, claim.lane())
            }
            Event::VoucherRedeemed { lane, .. } if lane.job == self.job => (Kind::Redeemed, *lane),
            Event::ClaimsVoided { lane, .. } if lane.job == self.job => {
                if let Some(heard) = self.lanes.get_mut(lane) {
                    heard.void = true;
                }
                return None;
            }
            Event::ChallengeOpened { challenge, id, claim, challenger, worker } if claim.job == self.job.0 => {
                self.games.insert(*challenge, Game::new(*id, claim.clone(), *challenger, *worker));
                return None;
            }
            Event::Challenge { challenge, told } => {
                let game = self.games.get_mut(challenge)?;
                game.apply(told);
                let by_worker = matches!(
                    told,
                    Told::Answered { .. } | Told::Established { .. } | Told::Stated { .. } | Told::LogsGiven { .. }
                );
                (Kind::Answered, by_worker.then(|| game.claim.lane())?)
            }
            Event::Demanded { id, demand } if demand.job == self.job.0 => {
                self.demands.insert(*id, demand.as_ref().clone());
                return None;
            }
            Event::DemandEnded { id, shown, .. } => {
                let demand = self.demands.remove(id)?;
                let of = |heard: &Heard| heard.worker == demand.holder;
                let lane = self.lanes.iter().find(|(_, heard)| of(heard)).map(|(lane, _)| *lane);
                (Kind::Answered, lane.filter(|_| shown.is_some())?)
            }
            Event::JobStarted { job, deadline, .. } if *job == self.job => {
                self.deadline = Some(*deadline);
                return None;
            }
            Event::JobClosing { job, .. } if *job == self.job => {
                self.closed_at = Some(at.timestamp);
                return None;
            }
            _ => return None,
        };
        let heard = self.lanes.get_mut(&lane)?;
        heard.last = Sign { what, at: at.timestamp };
        Some(lane)
    }

    /// Every lane with its worker, and when the chain told of it last.
    pub fn lanes(&self) -> impl Iterator<Item = (Lane, Address, Sign)> + '_ {
        self.lanes.iter().map(|(lane, heard)| (*lane, heard.worker, heard.last))
    }

    /// Whether a lane owes claims: of a job that has begun and takes some.
    pub fn owes_claims(&self, view: &JobView, lane: Lane) -> bool {
        let owes = |heard: &Heard| !heard.void && heard.claimed.max(heard.sealed) < view.intervals;
        self.deadline.is_some() && self.closed_at.is_none() && self.lanes.get(&lane).is_some_and(owes)
    }

    /// Whether a lane's worker was convicted.
    pub fn is_void(&self, lane: Lane) -> bool {
        self.lanes.get(&lane).is_some_and(|heard| heard.void)
    }

    /// When the chain told of a lane last.
    pub fn last(&self, lane: Lane) -> Option<Sign> {
        self.lanes.get(&lane).map(|heard| heard.last)
    }
}

#[cfg(test)]
mod tests;
