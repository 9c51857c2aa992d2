//! When a training goes on in another job: a worker was convicted or says nothing, nobody gets on, or what the job
//! began with was proved wrong.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Event, EventAt};
use tensorlink_types::{Address, JobId, U256};
use tensorlink_user::{JobNote, User};

use super::lanes::Lanes;
use super::silence::Silence;

/// A job in which nobody comes on is given up after so many times the silence that is borne of a worker.
const STALLED: u32 = 10;

/// Why a job is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A worker was convicted.
    Convicted,
    /// Of a worker nothing was heard for so many seconds.
    Silent(u64),
    /// Nobody has come on for so many seconds.
    Stalled(u64),
    /// Claims of an earlier job, from whose states it began, are void.
    Misled(JobId),
}

/// A job that is given up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Loss {
    /// Why.
    pub why: Why,
    /// Who is not hired again.
    pub workers: Vec<Address>,
}

impl Loss {
    /// The earlier job that it is to go on from, if that is not the one that is given up.
    pub const fn misled_by(&self) -> Option<JobId> {
        if let Why::Misled(job) = self.why { Some(job) } else { None }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why {
            Why::Convicted => f.write_str("a worker was convicted")?,
            Why::Silent(seconds) => write!(f, "a worker has been silent for {seconds} s")?,
            Why::Stalled(seconds) => write!(f, "nobody has come on for {seconds} s")?,
            Why::Misled(job) => write!(f, "it began with a state of job {job} that was proved wrong")?,
        }
        f.write_str("; it goes on in another job")?;
        let without: Vec<String> = self.workers.iter().map(Address::to_string).collect();
        if without.is_empty() { Ok(()) } else { write!(f, ", without {}", without.join(", ")) }
    }
}

/// A job that was given up, and what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Past {
    /// The job.
    pub view: JobView,
    /// What its user wrote down of it.
    pub note: JobNote,
    /// The replica from whose states a later job has gone on, and after how many intervals.
    pub replica: u16,
    /// None of them: 0.
    pub taken: u32,
    /// Its escrow, wei.
    pub deposit: U256,
    /// Why it was given up.
    pub loss: Loss,
    /// Whether its escrow came back, as far as is known here.
    #[serde(skip)]
    pub settled: bool,
}

/// Watches for a loss.
pub(super) struct Losses {
    /// Silence of a worker that is borne; none where a job is never given up.
    borne: Option<Duration>,
    /// The most steps that all lanes had done together, and when that was seen.
    done: (u64, Instant),
}

impl Losses {
    pub(super) fn new(borne: Option<Duration>) -> Self {
        Self { borne, done: (0, Instant::now()) }
    }

    /// Whether a job is to be given up, and why, its lanes being so far.
    pub(super) fn look(
        &mut self,
        silence: &mut Silence,
        (view, user, lanes): (&JobView, &User, &Lanes),
        before: &[Past],
    ) -> Option<Loss> {
        let borne = self.borne?.as_secs();
        let events = user.events();
        if let Some(loss) = misled(&events.borrow(), before) {
            return Some(loss);
        }
        if convicted(&events.borrow(), view.id) {
            return Some(Loss { why: Why::Convicted, workers: convicts(&events.borrow(), view.id, before) });
        }
        let workers = silence.lost(view, user, borne);
        if !silence.are_claims_due(view) {
            return None;
        }
        if !workers.is_empty() {
            return Some(Loss { why: Why::Silent(borne), workers });
        }
        let why = self.stalled(lanes.done(), Instant::now())?;
        Some(Loss { why, workers: silence.holders(&lanes.behind()) })
    }

    /// Whether nobody has come on for long, all lanes having `done` so many steps together by now.
    fn stalled(&mut self, done: u64, now: Instant) -> Option<Why> {
        if done > self.done.0 {
            self.done = (done, now);
        }
        let stalled = self.borne?.saturating_mul(STALLED);
        let is_over = now.saturating_duration_since(self.done.1) > stalled;
        is_over.then_some(Why::Stalled(stalled.as_secs()))
    }
}

/// Whether confirmed events tell that a job was closed for a conviction.
pub fn convicted(events: &[EventAt], of: JobId) -> bool {
    let closed = |at: &EventAt| matches!(&at.event, Event::JobClosing { job, convicted: true } if *job == of);
    events.iter().rev().any(closed)
}

/// Who was convicted in a job, and in those before it.
pub fn convicts(events: &[EventAt], of: JobId, before: &[Past]) -> Vec<Address> {
    let ours = |job: JobId| job == of || before.iter().any(|past| past.view.id == job);
    let convict = |at: &EventAt| match &at.event {
        Event::Convicted { lane, worker, .. } if ours(lane.job) => Some(*worker),
        _ => None,
    };
    let convicts: BTreeSet<Address> = events.iter().filter_map(convict).collect();
    convicts.into_iter().collect()
}

/// The oldest of the jobs before of which a state was taken that a void claim ends in, or a claim after one.
pub(super) fn misled(events: &[EventAt], before: &[Past]) -> Option<Loss> {
    let job = first_void(events, before.iter().map(|past| (past.view.id, past.replica, past.taken)))?;
    Some(Loss { why: Why::Misled(job), workers: convicts(events, job, before) })
}

/// The same, of jobs with the replica and the intervals after which a later one has gone on from it.
fn first_void(events: &[EventAt], before: impl IntoIterator<Item = (JobId, u16, u32)>) -> Option<JobId> {
    let is_void = |(job, replica, taken): &(JobId, u16, u32)| {
        let is_of = |at: &EventAt| match &at.event {
            Event::ClaimsVoided { lane, from } => lane.job == *job && lane.replica == *replica && from < taken,
            _ => false,
        };
        events.iter().any(is_of)
    };
    before.into_iter().find(is_void).map(|(job, ..)| job)
}

#[cfg(test)]
mod tests {
    use tensorlink_types::{B256, Lane};

    use super::super::lanes::tests::JOB;
    use super::*;

    fn at(event: Event) -> EventAt {
        EventAt { block: 1, block_hash: B256::ZERO, timestamp: 1, log_index: 0, transaction: B256::ZERO, event }
    }

    fn voided(job: JobId, from: u32) -> EventAt {
        at(Event::ClaimsVoided { lane: Lane { job, stage: 0, replica: 0 }, from })
    }

    #[test]
    fn a_state_that_was_taken_is_wrong_where_a_claim_before_it_is_void() {
        let before = [(JobId(1), 0, 3), (JobId(2), 0, 5)];
        let misled_by = |events: &[EventAt]| first_void(events, before);
        assert_eq!(misled_by(&[voided(JobId(1), 3), voided(JobId(2), 5)]), None, "nothing after them was taken");
        assert_eq!(misled_by(&[voided(JobId(3), 0)]), None, "another job");
        assert_eq!(misled_by(&[voided(JobId(2), 4)]), Some(JobId(2)));
        assert_eq!(misled_by(&[voided(JobId(2), 4), voided(JobId(1), 2)]), Some(JobId(1)), "the first wrong one");
        let other = [(JobId(1), 1, 3)];
        assert_eq!(first_void(&[voided(JobId(1), 2)], other), None, "another replica's states were taken");
    }

    #[test]
    fn only_a_conviction_that_closes_the_job_ends_it() {
        let closing = |convicted| at(Event::JobClosing { job: JOB, convicted });
        assert!(convicted(&[voided(JOB, 0), closing(true)], JOB));
        assert!(!convicted(&[closing(true)], JobId(2)));
        assert!(!convicted(&[closing(false)], JOB), "its user cancelled it");
    }

    #[test]
    fn who_does_something_is_not_stalled() {
        let (mut losses, now) = (Losses::new(Some(Duration::from_secs(6))), Instant::now());
        let after = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(losses.stalled(1, after(1000)), None, "it has just been done");
        assert_eq!(losses.stalled(1, after(1060)), None);
        assert_eq!(losses.stalled(0, after(1061)), Some(Why::Stalled(60)), "less than before is nothing new");
        assert_eq!(losses.stalled(2, after(1061)), None);
        assert_eq!(Losses::new(None).stalled(0, after(9999)), None, "it is never given up");
    }

    #[test]
    fn a_loss_says_why_and_without_whom() {
        let loss = Loss { why: Why::Silent(5), workers: vec![Address::repeat_byte(1)] };
        let said = loss.to_string();
        assert!(
            said.starts_with("a worker has been silent for 5 s; it goes on in another job, without 0x0101"),
            "{said}"
        );
        let json = serde_json::to_value(Loss { why: Why::Misled(JobId(7)), workers: Vec::new() }).unwrap();
        assert_eq!(json["why"]["misled"], 7);
    }
}
