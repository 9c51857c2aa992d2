//! Which workers of a followed job are silent: said once when it begins, and once when they are heard of again.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::Serialize;
use tensorlink_node::ports::EventAt;
use tensorlink_node::ports::chain::JobView;
use tensorlink_types::{Address, JobId, Lane};
use tensorlink_user::User;
use tokio::sync::watch::Receiver;

use crate::signs::{Due, Kind, Sign, Signs};
use crate::{live, output, when};

/// Seconds without a sign of life after which a worker is called silent. Workers speak to their peers every two.
const PATIENCE: u64 = 60;

/// The signs of life of a followed job.
pub(super) struct Silence {
    signs: Signs,
    events: Receiver<Vec<EventAt>>,
    /// Events taken in.
    told: usize,
    /// When each lane did something on chain, by this machine's clock: blocks' times may be far from it.
    seen: BTreeMap<Lane, u64>,
    since: u64,
    silent: BTreeSet<Lane>,
    seal_window: u64,
}

/// A lane that fell silent, or is heard of again.
#[derive(Serialize)]
struct Change {
    job: JobId,
    stage: u16,
    replica: u16,
    worker: Address,
    silent: bool,
    last_seen: Sign,
    due: Option<Due>,
}

impl Silence {
    /// Of a job, from now on; `seal_window`: of the deployment, seconds.
    pub(super) fn new(job: JobId, user: &User, seal_window: u64) -> Self {
        Self {
            signs: Signs::new(job),
            events: user.events(),
            told: 0,
            seen: BTreeMap::new(),
            since: when::now(),
            silent: BTreeSet::new(),
            seal_window,
        }
    }

    /// Looks at what came since, and says what changed.
    pub(super) fn look(&mut self, view: &JobView, user: &User, json: bool) -> Result<()> {
        let now = when::now();
        let events = self.events.borrow_and_update();
        for at in events.iter().skip(self.told) {
            if let Some(lane) = self.signs.take_in(at) {
                self.seen.insert(lane, now);
            }
        }
        self.told = events.len();
        drop(events);
        for change in self.changes(view, |worker| user.last_message(worker), now) {
            if json {
                output::print(true, &change, String::new)?;
            } else {
                live::say(&change.words(now));
            }
        }
        Ok(())
    }

    /// Lanes that fell silent or are heard of again, when their workers said something last by this machine's clock.
    fn changes(&mut self, view: &JobView, message: impl Fn(Address) -> Option<u64>, now: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        for (lane, worker, on_chain) in self.signs.lanes() {
            let message = message(worker);
            let heard = self.seen.get(&lane).copied().max(message).unwrap_or_default().max(self.since);
            let due = self.signs.due(view, lane, self.seal_window);
            let silent = due.is_some() && now.saturating_sub(heard) > PATIENCE;
            if silent == self.silent.contains(&lane) {
                continue;
            }
            let last_seen = on_chain.or_later(message.map(|at| Sign { what: Kind::Message, at }));
            let (stage, replica) = (lane.stage, lane.replica);
            changes.push(Change { job: lane.job, stage, replica, worker, silent, last_seen, due });
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
        let Self { stage, replica, worker, last_seen, .. } = self;
        let who = format!("stage {stage} replica {replica}, worker {worker}");
        if !self.silent {
            return format!("{who}: heard of again");
        }
        let due = self.due.as_ref().map(|due| format!("\n  it {}, or else: {}", due.words(now), due.then));
        format!("{who}: SILENT, last heard of {}{}", last_seen.words(now), due.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_node::ports::Event;
    use tensorlink_types::abi::{Claim, Offer};
    use tensorlink_types::{B256, ClaimId};

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
        Silence { signs, events, told: 0, seen, since: 1000, silent, seal_window: 10 }
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
        assert_eq!(stages(&silence.changes(&view, |_| None, 1101)), [(1, false)], "all its claims are made");
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
}
