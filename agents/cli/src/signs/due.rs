//! By when a lane must act, as the contracts have it, and what happens if it does not.

use serde::Serialize;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_proof::challenge::Turn;
use tensorlink_types::Lane;
use tensorlink_types::abi::JobKind;

use super::Signs;
use crate::when;

/// What a lane must do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Duty {
    /// Answer a challenge (rule P-22).
    Answer,
    /// Show what is demanded (rule P-35).
    Show,
    /// Seal its next claim (rule P-25).
    Seal,
    /// Reveal what it sealed before the job's end (rule P-25).
    Reveal,
    /// Make its claims before the job's deadline (rule P-10).
    Claim,
    /// Serve texts until the job's deadline (rule P-10).
    Serve,
    /// Be ready, so that the job begins.
    Begin,
}

impl Duty {
    /// What it must do, after "must".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Answer => "answer a challenge",
            Self::Show => "show what is demanded",
            Self::Seal => "seal its next claim",
            Self::Reveal => "reveal what it sealed",
            Self::Claim => "make its claims",
            Self::Serve => "serve and redeem",
            Self::Begin => "be ready",
        }
    }
}

/// What a lane must do next.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Due {
    /// What it must do.
    pub what: Duty,
    /// Until when, seconds of block time.
    pub by: u64,
    /// What happens if it stays silent: who may do what, by which command.
    pub then: String,
}

impl Due {
    /// `must make its claims by 2026-11-26 12:00:05 UTC, in 40 s`.
    pub fn words(&self, now: u64) -> String {
        format!("must {} by {}", self.what.words(), when::due(self.by, now))
    }
}

impl Signs {
    /// What a lane must do next; none if nothing is expected of it any more. `seal_window`: of the deployment, seconds.
    pub fn due(&self, view: &JobView, lane: Lane, seal_window: u64) -> Option<Due> {
        let (job, heard) = (view.id, self.lanes.get(&lane)?);
        if view.state == JobState::Settled || heard.void {
            return None;
        }
        let asked = |game: &tensorlink_proof::challenge::Game| {
            game.claim.lane() == lane && game.worker == heard.worker && game.turn == Turn::Answering
        };
        if let Some((number, game)) = self.games.iter().find(|(_, game)| asked(game)) {
            let then = format!(
                "it is convicted of silence and loses its stake in this job: validators and the challenger end the \
                 challenge; `tensorlink dispute explain {number}` tells how it stands"
            );
            return Some(Due { what: Duty::Answer, by: game.deadline, then });
        }
        if let Some((number, demand)) = self.demands.iter().find(|(_, demand)| demand.holder == heard.worker) {
            let then = format!(
                "it is convicted and loses its stake in this job: any worker of the job, or who demanded it, ends \
                 demand {number}; `tensorlink dispute list --job {job}` tells how it stands"
            );
            return Some(Due { what: Duty::Show, by: demand.deadline.to(), then });
        }
        // Events are newer than a view that was looked up once.
        let deadline = self.deadline.unwrap_or(view.deadline);
        if view.state == JobState::Accepted && self.deadline.is_none() {
            let then = format!(
                "the job does not begin: its user ends it by `tensorlink job cancel {job}`, anybody once that time is \
                 over, and the escrow comes back"
            );
            return Some(Due { what: Duty::Begin, by: view.accept_by, then });
        }
        if view.state == JobState::Closing || self.closed_at.is_some() {
            let then = format!(
                "what it sealed is not paid; nobody waits for it: `tensorlink job watch {job}` settles the job after it"
            );
            let by = self.closed_at?.saturating_add(seal_window);
            return (view.replicas > 1 && heard.claimed < heard.sealed).then_some(Due { what: Duty::Reveal, by, then });
        }
        match view.kind {
            JobKind::Serving => {
                let then = format!(
                    "no text goes through its pipeline; texts of other replicas go on. The user ends the job by \
                     `tensorlink job cancel {job}`, anybody after its deadline; what was not redeemed comes back"
                );
                Some(Due { what: Duty::Serve, by: deadline, then })
            }
            JobKind::Training if heard.claimed.max(heard.sealed) >= view.intervals => None,
            JobKind::Training => Some(self.next_claim(view, (lane, heard.sealed), (deadline, seal_window))),
        }
    }

    /// By when a lane of a running training makes its next claim.
    fn next_claim(&self, view: &JobView, (lane, sealed): (Lane, u32), (deadline, seal_window): (u64, u64)) -> Due {
        let job = view.id;
        if view.replicas > 1
            && let Some(by) = self.seals_end(lane.stage, sealed, seal_window)
        {
            let then = format!(
                "it can make no more claims, keeps what it earned, and nobody waits for it any more: the other replicas \
                 go on, and `tensorlink job watch {job}` settles the job without it"
            );
            return Due { what: Duty::Seal, by, then };
        }
        let then = format!(
            "the job stands still until whoever follows it goes on without this worker (--failover), or its user ends it by \
             `tensorlink job cancel {job}` and goes on by `tensorlink job resume {job} --deposit AMOUNT`; after the \
             deadline anybody can end it; what is claimed is paid, the rest comes back"
        );
        Due { what: Duty::Claim, by: deadline, then }
    }

    /// When the round of a stage and interval takes no more seals; none while nobody has sealed it, or nobody has
    /// revealed the one before: `_sealsEnd` of the contract.
    fn seals_end(&self, stage: u16, interval: u32, seal_window: u64) -> Option<u64> {
        let round = |interval| self.rounds.get(&(stage, interval)).copied().unwrap_or_default();
        let from = round(interval).sealed_at?;
        let before = match interval.checked_sub(1) {
            Some(before) => round(before).revealed_at?,
            None => from,
        };
        Some(from.max(before).saturating_add(seal_window))
    }
}
