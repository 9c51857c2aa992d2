//! What a worker remembers of a lane, on disk, so that a kill at any moment loses nothing and repeats nothing.

mod halt;
mod interval;
mod log;

use std::collections::{BTreeMap, BTreeSet};

use cid::Cid;
use serde::{Deserialize, Serialize};
use tensorlink_node::bounds::{Bounds, Readings};
use tensorlink_types::abi::{BoundaryLogs, Claim, ClaimLink, Holder};
use tensorlink_types::{Address, Lane, Lineage};

pub use halt::Halt;
pub use interval::{Interval, Round};
pub use log::{LaneLog, take_back};

/// A lane on disk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LaneRecord {
    /// The lane.
    pub lane: Lane,
    /// The job's user, who also holds its files.
    pub user: Address,
    /// CID of the job's manifest.
    pub manifest: String,
    /// Fixed when the job starts.
    pub lineage: Option<Lineage>,
    /// Finished intervals that may still be asked for.
    pub intervals: BTreeMap<u32, Interval>,
    /// First interval not finished.
    pub next: u32,
    /// The logs of interval `next`, once they were signed: no others ever are.
    #[serde(default)]
    pub promised: Option<(u32, BoundaryLogs)>,
    /// Mean loss of the job's first interval, nats; of the last stage only.
    #[serde(default)]
    pub first_loss: Option<f32>,
    /// Set when an interval exceeded a bound of the job: no further one is computed.
    #[serde(default)]
    pub halted: Option<Halt>,
    /// CID of the state before interval `next`; none before the first: the job's initial state.
    pub next_state: Option<String>,
    /// What all replicas of the stage have sealed and revealed, by interval; in jobs with one replica empty.
    #[serde(default)]
    pub rounds: BTreeMap<u32, Round>,
    /// The newest interval whose state every stage of the job has kept by others, as confirmed events tell.
    #[serde(default)]
    pub kept_by_others: Option<u32>,
    /// Whether a confirmed event has closed the job.
    #[serde(default)]
    pub closing: bool,
    /// Set when the contract did not take the keeper's attestation: it is convicted, and the user is asked.
    #[serde(default)]
    pub keeper_failed: bool,
    /// The first interval that was sealed or revealed too late: from it on no claims are taken. What was sealed before
    /// it is still revealed.
    #[serde(default)]
    pub barred_from: Option<u32>,
    /// Set when the lane is settled or convicted: nothing is left to do.
    pub over: bool,
    /// The block that settled its job, as a confirmed event tells.
    #[serde(default)]
    pub settled_at: Option<u64>,
}

impl LaneRecord {
    /// A lane just accepted.
    pub fn new(lane: Lane, user: Address, manifest: String) -> Self {
        Self {
            lane,
            user,
            manifest,
            lineage: None,
            intervals: BTreeMap::new(),
            next: 0,
            promised: None,
            first_loss: None,
            halted: None,
            next_state: None,
            rounds: BTreeMap::new(),
            kept_by_others: None,
            closing: false,
            keeper_failed: false,
            barred_from: None,
            over: false,
            settled_at: None,
        }
    }

    /// What the job's manifest is fetched by.
    ///
    /// # Errors
    /// For people, where the posting named no CID.
    pub(crate) fn manifest(&self) -> Result<Cid, String> {
        self.manifest.parse().map_err(|_| format!("{:?} is not a CID", self.manifest))
    }

    /// Forgets what events have told, which a reorganisation has undone in part: they are told anew. What this node
    /// computed and signed stays.
    pub fn take_back(&mut self) {
        (self.lineage, self.closing, self.barred_from, self.over, self.settled_at) = (None, false, None, false, None);
        self.kept_by_others = None;
        self.rounds.clear();
        for interval in self.intervals.values_mut() {
            interval.confirmed = false;
        }
    }

    /// What was signed to the neighbours about an interval, whether or not it is finished.
    pub fn signed(&self, interval: u32) -> Option<&BoundaryLogs> {
        let promised = self.promised.as_ref().filter(|(of, _)| *of == interval).map(|(_, logs)| logs);
        self.intervals.get(&interval).map(|known| &known.logs).or(promised)
    }

    /// Whether work can begin with `interval`: the state before it is here.
    pub fn can_resume(&self, interval: u32) -> bool {
        interval == self.next || self.intervals.contains_key(&interval)
    }

    /// Whether no claim is taken of `interval` any more.
    pub fn is_barred(&self, interval: u32) -> bool {
        self.barred_from.is_some_and(|from| interval >= from)
    }

    /// Where the interval before `next`, by what it told, exceeds a bound of the job. The first loss is its own where
    /// there was none before.
    pub(crate) fn halt(&self, bounds: &Bounds, readings: Readings) -> Option<Halt> {
        let excess = bounds.exceeded(readings, self.first_loss.or(readings.loss))?;
        Some(Halt { intervals: self.next, excess, readings })
    }

    /// Whether the lane goes no further than to the interval `next`.
    pub(crate) fn halted_before(&self, next: u32) -> Option<Halt> {
        self.halted.filter(|halt| halt.intervals == next)
    }

    /// CIDs of all files that the record names.
    pub fn files(&self) -> BTreeSet<&str> {
        let finished = self.intervals.values().flat_map(|interval| [interval.state.as_str(), interval.inputs.as_str()]);
        finished.chain(self.next_state.as_deref()).filter(|cid| !cid.is_empty()).collect()
    }

    /// The first finished interval that is not on chain, with the link to the one before it. None if there is none, or
    /// the one before is not known to be on chain yet.
    pub fn next_to_commit(&self) -> Option<(Claim, ClaimLink)> {
        let (number, interval) = self.intervals.iter().find(|(_, interval)| interval.committed_at.is_none())?;
        if *number == 0 {
            let link = ClaimLink { parentState: Default::default(), io: Default::default(), committedAt: 0 };
            return Some((interval.claim.clone(), link));
        }
        let before = self.intervals.get(&(number - 1))?;
        let link =
            ClaimLink { parentState: before.claim.parentState, io: before.claim.io, committedAt: before.committed_at? };
        Some((interval.claim.clone(), link))
    }

    /// Claims from `finalized` on that can be final at time `now`, at most `most`, with the attestation of whoever
    /// keeps the state that the last of them ends in: those whose window is over, up to one that has a holder, or,
    /// without one, those whose window is over twice. The window has `window` seconds, and twice as many where
    /// replicas differ.
    pub fn finalizable(&self, finalized: u32, window: u64, now: u64, most: usize) -> (Vec<(Claim, u64)>, Holder) {
        let twice = window.saturating_mul(2);
        let (mut claims, mut count, mut holder) = (Vec::new(), 0, Holder::default());
        let mut alone = true;
        for (number, interval) in self.intervals.range(finalized..).take(most) {
            let Some(at) = interval.committed_at else { break };
            let differ = self.rounds.get(number).is_some_and(|round| round.differ);
            let over = |window: u64| at.saturating_add(window) <= now;
            if !over(if differ { twice } else { window }) {
                break;
            }
            alone &= over(twice);
            claims.push((interval.claim.clone(), at));
            if alone {
                count = claims.len();
            } else if let Some(attested) = &interval.holder {
                (count, holder) = (claims.len(), attested.clone());
            }
        }
        claims.truncate(count);
        (claims, holder)
    }

    /// CID of the state after an interval.
    pub fn state_after(&self, interval: u32) -> Option<&str> {
        let next = interval.checked_add(1)?;
        let begun = self.intervals.get(&next).map(|known| &known.state);
        begun.or(self.next_state.as_ref().filter(|_| self.next == next)).map(String::as_str)
    }

    /// Whether an interval from `keep_from` on, or the next, needs a file.
    pub fn needs(&self, cid: &str, keep_from: u32) -> bool {
        self.next_state.as_deref() == Some(cid)
            || self.intervals.range(keep_from..).any(|(_, interval)| interval.state == cid || interval.inputs == cid)
    }

    /// Claims on chain whose states are to be kept by others and are not: that which every stage of the job has kept,
    /// and the newest, if it is the job's last (`last`) or was made `apart` seconds after the one before it that is
    /// kept. One attestation serves all claims before it, and nobody keeps the state of each.
    pub fn unheld(&self, last: u32, apart: u64) -> Vec<&Interval> {
        let open = |interval: &&Interval| interval.committed_at.is_some() && interval.holder.is_none();
        let of_all = self.kept_by_others.and_then(|number| self.intervals.get(&number)).filter(open);
        let mut claimed = self.intervals.values().rev().filter(|interval| interval.committed_at.is_some());
        let newest = claimed.next().filter(open).filter(|newest| {
            let before = claimed.find(|interval| interval.holder.is_some()).and_then(|interval| interval.committed_at);
            let due = before.zip(newest.committed_at).is_none_or(|(before, at)| at >= before.saturating_add(apart));
            due || self.closing || newest.claim.interval >= last
        });
        let mut unheld: Vec<&Interval> = of_all.into_iter().chain(newest).collect();
        unheld.dedup_by_key(|interval| interval.claim.interval);
        unheld
    }

    /// The newest that is on chain, if nobody else keeps its state.
    pub fn newest_claimed(&self) -> Option<&Interval> {
        let newest = self.intervals.values().rev().find(|interval| interval.committed_at.is_some());
        newest.filter(|interval| interval.holder.is_none())
    }

    /// Finished intervals that are not on chain yet.
    pub fn uncommitted(&self) -> usize {
        self.intervals.values().filter(|interval| interval.committed_at.is_none()).count()
    }

    /// Finished intervals of which the chain has neither a claim nor a seal yet.
    pub fn unsealed(&self) -> usize {
        self.intervals.values().filter(|interval| interval.committed_at.is_none() && !interval.sealed).count()
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::{B256, JobId};

    use super::*;

    #[test]
    fn a_record_names_the_files_of_its_intervals_and_of_the_next() {
        let mut record =
            LaneRecord::new(Lane { job: JobId(1), stage: 0, replica: 0 }, Address::ZERO, "manifest".into());
        assert!(record.files().is_empty());
        let zero = B256::ZERO;
        let logs = BoundaryLogs { fromPrevious: zero, fromNext: zero, toPrevious: zero, toNext: zero };
        record.intervals.insert(0, Interval::new(Claim::default(), logs.clone(), "state".into(), "inputs".into()));
        record.intervals.insert(1, Interval::new(Claim::default(), logs, String::new(), "inputs".into()));
        record.next_state = Some("next".into());
        assert_eq!(record.files(), BTreeSet::from(["inputs", "next", "state"]));
    }
}
