//! Which workers of a followed job are silent: said once when it begins, and once when they are heard of again, or owe
//! nothing more.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::Serialize;
use tensorlink_node::ports::EventAt;
use tensorlink_node::ports::chain::JobView;
use tensorlink_types::{Address, JobId, Lane};
use tensorlink_user::User;
use tokio::sync::watch::Receiver;

use super::hearing::Hearing;
use super::told::Told;
use crate::signs::{Due, Kind, Sign, Signs};
use crate::tiers::Tiers;
use crate::{live, output, tiers, when};

/// Seconds without a sign of life after which a worker is called silent. Workers speak to their peers every two.
const PATIENCE: u64 = 60;

/// The signs of life of a followed job.
pub(super) struct Silence {
    job: JobId,
    signs: Signs,
    events: Receiver<Vec<EventAt>>,
    told: Told,
    /// When each lane did something on chain, by this machine's clock: blocks' times may be far from it.
    seen: BTreeMap<Lane, u64>,
    hearing: Hearing,
    silent: BTreeSet<Lane>,
    seal_window: u64,
    tiers: Tiers,
}

/// A lane that fell silent, is heard of again, or owes nothing more.
#[derive(Serialize)]
struct Change {
    job: JobId,
    stage: u16,
    replica: u16,
    worker: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<String>,
    silent: bool,
    /// Whether it was heard of within the last minute.
    heard: bool,
    convicted: bool,
    last_seen: Sign,
    due: Option<Due>,
}

impl Silence {
    /// Of a job whose workers are of these tiers, from now on; `seal_window`: of the deployment, seconds.
    pub(super) fn new(job: JobId, user: &User, tiers: Tiers, seal_window: u64) -> Self {
        Self {
            job,
            signs: Signs::new(job),
            events: user.events(),
            told: Told::default(),
            seen: BTreeMap::new(),
            hearing: Hearing::new(when::now()),
            silent: BTreeSet::new(),
            seal_window,
            tiers,
        }
    }

    /// Looks at what came since, and says what changed.
    pub(super) fn look(&mut self, view: &JobView, user: &User, json: bool) -> Result<()> {
        let now = when::now();
        let events = self.events.clone();
        self.take_in(&events.borrow(), now);
        for change in self.changes(view, |worker| user.last_message(worker), now) {
            if json {
                output::print(true, &change, String::new)?;
            } else {
                live::tell(&change.words(now));
            }
        }
        Ok(())
    }

    /// Takes in what is new at a time; where a reorganisation has undone what was taken in, all of it anew.
    fn take_in(&mut self, events: &[EventAt], now: u64) {
        let (anew, fresh) = self.told.fresh(events);
        if anew {
            self.signs = Signs::new(self.job);
        }
        for at in fresh {
            // What is only repeated is no new sign of life.
            if let Some(lane) = self.signs.take_in(at)
                && !anew
            {
                self.seen.insert(lane, now);
            }
        }
        // Nobody answers for a lane that is held by nobody any more.
        let held: BTreeSet<Lane> = self.signs.lanes().map(|(lane, ..)| lane).collect();
        self.silent.retain(|lane| held.contains(lane));
    }

    /// Workers that owe claims and of whom nothing was heard for more than so many seconds, if every replica has one,
    /// or a convicted one.
    pub(super) fn lost(&mut self, view: &JobView, user: &User, borne: u64) -> Vec<Address> {
        let now = when::now();
        if !self.hearing.look((user.last_heard(), borne), now) {
            return Vec::new();
        }
        self.lost_at(view, |worker| user.last_message(worker), borne, now)
    }

    fn lost_at(&self, view: &JobView, message: impl Fn(Address) -> Option<u64>, borne: u64, now: u64) -> Vec<Address> {
        let (mut broken, mut workers) = (BTreeSet::new(), Vec::new());
        for (lane, worker, _) in self.signs.lanes() {
            let silent = now.saturating_sub(self.heard(lane, message(worker))) > borne;
            if silent && self.signs.owes_claims(view, lane) {
                workers.push(worker);
                broken.insert(lane.replica);
            } else if self.signs.is_void(lane) {
                broken.insert(lane.replica);
            }
        }
        if broken.len() < usize::from(view.replicas) {
            workers.clear();
        }
        workers
    }

    /// Whether somebody owes claims still.
    pub(super) fn are_claims_due(&self, view: &JobView) -> bool {
        self.signs.lanes().any(|(lane, ..)| self.signs.owes_claims(view, lane))
    }

    /// Who holds these lanes.
    pub(super) fn holders(&self, lanes: &[Lane]) -> Vec<Address> {
        self.signs.lanes().filter(|(lane, ..)| lanes.contains(lane)).map(|(_, worker, _)| worker).collect()
    }

    /// When a lane was heard of last, by this machine's clock, its worker having said something last at that time.
    fn heard(&self, lane: Lane, message: Option<u64>) -> u64 {
        self.seen.get(&lane).copied().max(message).unwrap_or_default().max(self.hearing.since())
    }

    /// Lanes that fell silent, are heard of again or owe nothing more, when their workers said something last by this
    /// machine's clock.
    fn changes(&mut self, view: &JobView, message: impl Fn(Address) -> Option<u64>, now: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        for (lane, worker, on_chain) in self.signs.lanes() {
            let message = message(worker);
            let due = self.signs.due(view, lane, self.seal_window);
            let heard = now.saturating_sub(self.heard(lane, message)) <= PATIENCE;
            let silent = due.is_some() && !heard;
            if silent == self.silent.contains(&lane) {
                continue;
            }
            let last_seen = on_chain.or_later(message.map(|at| Sign { what: Kind::Message, at }));
            let (stage, replica) = (lane.stage, lane.replica);
            let convicted = self.signs.is_void(lane);
            let (job, tier) = (lane.job, self.tiers.get(worker).map(str::to_owned));
            changes.push(Change { job, stage, replica, worker, tier, silent, heard, convicted, last_seen, due });
        }
        for change in &changes {
            let lane = Lane { job: change.job, stage: change.stage, replica: change.replica };
            if change.silent {
                self.silent.insert(lane)
            } else {
                self.silent.remove(&lane)
            };
        }
        changes
    }

    /// What the live view shows of it; nothing where everybody is heard.
    pub(super) fn line(&self) -> Option<String> {
        let lanes: Vec<String> =
            self.silent.iter().map(|lane| format!("stage {} replica {}", lane.stage, lane.replica)).collect();
        (!lanes.is_empty()).then(|| format!("SILENT: {}", lanes.join(", ")))
    }
}

impl Change {
    fn words(&self, now: u64) -> String {
        let Self { stage, replica, worker, tier, last_seen, .. } = self;
        let who = format!("stage {stage} replica {replica}, worker {}", tiers::words(*worker, tier.as_deref()));
        match self {
            Self { silent: true, .. } => {}
            Self { convicted: true, .. } => return format!("{who}: convicted; nothing is due of it any more"),
            Self { heard: true, .. } => return format!("{who}: heard of again"),
            _ => return format!("{who}: nothing is due of it any more"),
        }
        let due = self.due.as_ref().map(|due| format!("\n  it {}, or else: {}", due.words(now), due.then));
        format!("{who}: SILENT, last heard of {}{}", last_seen.words(now), due.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_node::ports::Event;
    use tensorlink_types::abi::{Claim, Offer};
    use tensorlink_types::{B256, ClaimId, JobKey};

    use super::super::lanes::tests::{JOB, view};
    use super::*;

    const WORKERS: [Address; 2] = [Address::repeat_byte(1), Address::repeat_byte(2)];

    /// A job of two stages, followed from 1000 on by this machine's clock.
    fn silence() -> Silence {
        let offer = |stage: u16| Offer {
            job: JOB.0,
            terms: B256::ZERO,
            stage,
            replica: 0,
            worker: WORKERS[usize::from(stage)],
            pricePerInterval: 1,
            expires: Default::default(),
        };
        let mut signs = Signs::new(JOB);
        signs.take_in(&at(10, Event::JobAccepted { job: JOB, offers: vec![offer(0), offer(1)] }));
        let events = tokio::sync::watch::channel(Vec::new()).1;
        let (seen, silent) = (BTreeMap::new(), BTreeSet::new());
        Silence {
            job: JOB,
            signs,
            events,
            told: Told::default(),
            seen,
            hearing: Hearing::new(1000),
            silent,
            seal_window: 10,
            tiers: serde_json::from_value(serde_json::json!({ (WORKERS[1].to_string()): "B" })).unwrap(),
        }
    }

    fn at(timestamp: u64, event: Event) -> EventAt {
        EventAt { block: 1, block_hash: B256::ZERO, timestamp, log_index: 0, transaction: B256::ZERO, event }
    }

    fn stages(changes: &[Change]) -> Vec<(u16, bool)> {
        changes.iter().map(|change| (change.stage, change.silent)).collect()
    }

    #[test]
    fn who_says_nothing_for_a_minute_is_silent_until_it_is_heard_again() {
        let (mut silence, view) = (silence(), view());
        let first = |at: u64| move |worker: Address| (worker == WORKERS[0]).then_some(at);
        assert!(silence.changes(&view, first(1000), 1060).is_empty(), "not yet");
        assert_eq!(silence.line(), None);
        let changes = silence.changes(&view, first(1059), 1061);
        assert_eq!(stages(&changes), [(1, true)]);
        let told = changes[0].words(1061);
        assert!(
            told.contains(&format!("{}", WORKERS[1])) && told.contains("SILENT, last heard of 1970-01-01"),
            "{told}"
        );
        assert!(told.contains("must make its claims by") && told.contains("`tensorlink job cancel 1`"), "{told}");
        assert!(silence.line().is_some_and(|line| line.contains("stage 1 replica 0")));
        assert!(silence.changes(&view, first(1100), 1101).is_empty(), "it is said once");
        assert_eq!(stages(&silence.changes(&view, |_| Some(1110), 1111)), [(1, false)]);
        assert_eq!(silence.line(), None);
    }

    #[test]
    fn who_claims_is_not_silent_and_who_has_nothing_to_do_may_be() {
        let (mut silence, view) = (silence(), view());
        silence.seen.insert(Lane { job: JOB, stage: 0, replica: 0 }, 1050);
        assert_eq!(stages(&silence.changes(&view, |_| None, 1100)), [(1, true)]);
        for interval in 0..view.intervals {
            let claim = Claim { job: JOB.0, stage: 1, interval, ..Claim::default() };
            let event = Event::ClaimCommitted { id: ClaimId(B256::ZERO), claim, committed_at: 20 };
            silence.signs.take_in(&at(20, event));
        }
        let changes = silence.changes(&view, |_| None, 1101);
        assert_eq!(stages(&changes), [(1, false)], "all its claims are made");
        assert!(changes[0].words(1101).ends_with("nothing is due of it any more"), "{}", changes[0].words(1101));
    }

    #[test]
    fn a_job_is_lost_when_every_replica_has_somebody_silent() {
        let (mut silence, view) = (silence(), view());
        let first = |at: u64| move |worker: Address| (worker == WORKERS[0]).then_some(at);
        assert!(silence.lost_at(&view, first(1000), 5, 1100).is_empty(), "it has not begun");
        let started = Event::JobStarted { job: JOB, job_key: JobKey(B256::ZERO), deadline: 9000 };
        silence.signs.take_in(&at(20, started));
        assert!(silence.lost_at(&view, first(1000), 5, 1005).is_empty(), "not yet");
        assert_eq!(silence.lost_at(&view, first(1005), 5, 1006), [WORKERS[1]]);
        assert!(silence.are_claims_due(&view));
        let second = Lane { job: JOB, stage: 1, replica: 0 };
        assert_eq!(silence.holders(&[second]), [WORKERS[1]]);
        let two = JobView { replicas: 2, ..view };
        assert!(silence.lost_at(&two, first(1005), 5, 1006).is_empty(), "the other replica goes on");
        silence.signs.take_in(&at(30, Event::JobClosing { job: JOB, convicted: false }));
        assert!(silence.lost_at(&view, first(1005), 5, 1006).is_empty(), "its user cancelled it");
        assert!(!silence.are_claims_due(&view));
    }

    #[test]
    fn of_a_convicted_worker_is_not_said_that_it_is_heard_of_again() {
        let (mut silence, view) = (silence(), view());
        assert_eq!(silence.changes(&view, |_| None, 1061).len(), 2);
        let lane = Lane { job: JOB, stage: 1, replica: 0 };
        silence.signs.take_in(&at(20, Event::ClaimsVoided { lane, from: 0 }));
        let changes = silence.changes(&view, |worker| (worker == WORKERS[1]).then_some(1061), 1062);
        assert_eq!(stages(&changes), [(1, false)]);
        let told = changes[0].words(1062);
        assert!(told.contains("convicted") && !told.contains("again"), "{told}");
        assert!(serde_json::to_value(&changes[0]).unwrap()["convicted"].as_bool().unwrap());
    }

    #[test]
    fn what_was_undone_is_no_sign_of_life() {
        let (mut silence, view) = (silence(), view());
        let accepted = |block| {
            let offers = WORKERS.iter().zip(0..).map(|(worker, stage)| Offer {
                terms: B256::ZERO,
                job: JOB.0,
                stage,
                replica: 0,
                worker: *worker,
                pricePerInterval: 1,
                expires: Default::default(),
            });
            EventAt { block, ..at(10, Event::JobAccepted { job: JOB, offers: offers.collect() }) }
        };
        let claimed = |block, interval| {
            let claim = Claim { job: JOB.0, stage: 1, interval, ..Claim::default() };
            let event = Event::ClaimCommitted { id: ClaimId(B256::ZERO), claim, committed_at: 20 };
            EventAt { block, ..at(20, event) }
        };
        let all: Vec<EventAt> =
            [accepted(1)].into_iter().chain((0..view.intervals).map(|n| claimed(2 + u64::from(n), n))).collect();
        silence.take_in(&all, 1000);
        let only_first = |worker: Address| (worker == WORKERS[0]).then_some(1100);
        assert!(silence.changes(&view, only_first, 1100).is_empty(), "all its claims are made");
        silence.take_in(&all[..1], 1100);
        assert_eq!(stages(&silence.changes(&view, only_first, 1101)), [(1, true)], "they were undone");
        assert_eq!(silence.signs.last(Lane { job: JOB, stage: 1, replica: 0 }).unwrap().what, Kind::Accepted);
        silence.take_in(&[], 1101);
        assert_eq!((silence.line(), silence.changes(&view, |_| None, 1200).len()), (None, 0), "nobody works there");
    }

    #[test]
    fn the_last_sign_is_told_by_its_kind() {
        let mut silence = silence();
        let changes = silence.changes(&view(), |_| Some(20), 1061);
        assert_eq!(changes[0].last_seen, Sign { what: Kind::Message, at: 20 });
        let json = serde_json::to_value(&changes[0]).unwrap();
        assert_eq!((&json["silent"], &json["last_seen"]["what"]), (&true.into(), &"message".into()));
        assert_eq!(json["due"]["what"], "claim");
    }

    #[test]
    fn a_worker_is_told_with_its_tier_where_that_is_known() {
        let changes = silence().changes(&view(), |_| None, 1061);
        let told: Vec<String> = changes.iter().map(|change| change.words(1061)).collect();
        assert!(told[0].contains(&format!("worker {}: SILENT", WORKERS[0])), "{}", told[0]);
        assert!(told[1].contains(&format!("worker {}, tier B: SILENT", WORKERS[1])), "{}", told[1]);
        let json = serde_json::to_value(&changes).unwrap();
        assert_eq!((&json[0]["tier"], &json[1]["tier"]), (&serde_json::Value::Null, &"B".into()));
    }
}
