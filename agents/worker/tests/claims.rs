//! Claims get on chain once, whatever happens to receipts, restarts and blocks.

#[path = "../../node/tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{CONTRACTS, MemoryChain, USER, WINDOW, identity, job_view, lane};
use tensorlink_node::Journal;
use tensorlink_types::B256;
use tensorlink_types::abi::{BoundaryLogs, Claim};
use tensorlink_worker::claims::{self, Claimant, ClaimsError};
use tensorlink_worker::record::{Interval, LaneLog, LaneRecord};
use tokio_util::sync::CancellationToken;

const INTERVALS: u32 = 3;

struct Bench {
    chain: Arc<MemoryChain>,
    folder: tempfile::TempDir,
}

fn claim(interval: u32) -> Claim {
    let state = |n: u32| B256::with_last_byte(n as u8 + 1);
    let (job, stage, replica) = (1, 0, 0);
    Claim { job, stage, replica, interval, parentState: state(interval), newState: state(interval + 1), io: B256::ZERO }
}

impl Bench {
    fn new() -> Self {
        let worker = identity(7).address();
        let chain = MemoryChain::new(job_view(1, INTERVALS), &[worker], &[]);
        Self { chain, folder: tempfile::tempdir().unwrap() }
    }

    /// The log as a process that just started finds it.
    fn log(&self) -> Arc<LaneLog> {
        let journal = Journal::open(self.folder.path()).unwrap();
        Arc::new(LaneLog::open(journal, LaneRecord::new(lane(0), USER, String::new())).unwrap())
    }

    fn computed(&self, intervals: u32) -> Arc<LaneLog> {
        let log = self.log();
        log.update(|record| {
            let zero = B256::ZERO;
            let logs = BoundaryLogs { fromPrevious: zero, fromNext: zero, toPrevious: zero, toNext: zero };
            for n in 0..intervals {
                record.intervals.insert(n, Interval::new(claim(n), logs.clone(), String::new(), String::new()));
            }
            record.next = intervals;
        })
        .unwrap();
        log
    }

    /// Lets the committer run for a moment.
    async fn run(&self, log: &Arc<LaneLog>) -> Option<Result<(), ClaimsError>> {
        let by = Claimant::new(self.chain.clone(), identity(7), CONTRACTS);
        let run = claims::run(by, log.clone(), CancellationToken::new());
        tokio::time::timeout(Duration::from_millis(300), run).await.ok()
    }

    fn sent(&self, what: &str) -> usize {
        self.chain.with(|l| l.sent.iter().filter(|sent| **sent == what).count())
    }
}

#[tokio::test]
async fn each_claim_is_committed_once_and_final_after_its_window() {
    let bench = Bench::new();
    let log = bench.computed(INTERVALS);
    assert!(bench.run(&log).await.is_none(), "the window is open");
    assert_eq!((bench.sent("commit"), bench.sent("finalize")), (3, 0));
    assert_eq!(log.get().uncommitted(), 0);
    bench.chain.with(|l| l.now += WINDOW + 5);
    assert!(matches!(bench.run(&bench.log()).await, Some(Ok(()))));
    assert_eq!((bench.sent("commit"), bench.sent("finalize")), (3, 1));
    assert_eq!(bench.chain.with(|l| l.lanes[&lane(0)].finalized), INTERVALS);
}

#[tokio::test]
async fn a_claim_whose_receipt_was_lost_is_not_made_twice() {
    let bench = Bench::new();
    let log = bench.computed(2);
    bench.chain.with(|l| l.lose_receipt = true);
    bench.run(&log).await;
    assert_eq!(bench.sent("commit"), 1);
    // A restart: the claim is on chain, its time is not known until the confirmed event tells.
    let log = bench.log();
    bench.run(&log).await;
    assert_eq!((bench.sent("commit"), log.get().uncommitted()), (1, 2));
    let at = bench.chain.with(|l| l.claims[&(0, 0)].1);
    claims::confirmed(&log, &claim(0), at).unwrap();
    bench.run(&log).await;
    assert_eq!((bench.sent("commit"), log.get().uncommitted()), (2, 0));
}

#[tokio::test]
async fn a_claim_that_we_did_not_make_stops_the_lane() {
    let bench = Bench::new();
    let log = bench.computed(1);
    let other = Claim { newState: B256::ZERO, ..claim(0) };
    assert!(matches!(claims::confirmed(&log, &other, 5), Err(ClaimsError::Foreign(0))));
    assert!(matches!(claims::confirmed(&log, &claim(1), 5), Err(ClaimsError::Foreign(1))), "not computed here yet");
    log.update(|record| record.intervals.clear()).unwrap();
    claims::confirmed(&log, &other, 5).unwrap();
    assert_ne!(CONTRACTS.claim_id(&other), CONTRACTS.claim_id(&claim(0)));
}

#[tokio::test]
async fn a_reorganisation_that_moves_a_claim_moves_its_time() {
    let bench = Bench::new();
    let log = bench.computed(1);
    bench.run(&log).await;
    let before = log.get().intervals[&0].committed_at.unwrap();
    claims::confirmed(&log, &claim(0), before + 3).unwrap();
    let entry = bench.log().get().intervals[&0].clone();
    assert_eq!((entry.committed_at, entry.confirmed), (Some(before + 3), true), "on disk");
}

#[tokio::test]
async fn claims_that_a_reorganisation_undid_are_made_again() {
    let bench = Bench::new();
    let log = bench.computed(3);
    bench.run(&log).await;
    let at = bench.chain.with(|l| l.claims[&(0, 0)].1);
    claims::confirmed(&log, &claim(0), at).unwrap();
    bench.chain.with(|l| l.claims.retain(|(_, interval), _| *interval == 0));
    bench.run(&log).await;
    assert_eq!((bench.sent("commit"), bench.chain.with(|l| l.claims.len())), (5, 3));
}

#[tokio::test]
async fn a_job_past_its_deadline_is_closed_and_what_was_claimed_is_paid() {
    let bench = Bench::new();
    let log = bench.computed(1);
    bench.run(&log).await;
    bench.chain.with(|l| l.now = l.job.deadline + 1);
    bench.run(&log).await;
    assert_eq!((bench.sent("cancel"), bench.sent("finalize")), (1, 1));
    assert!(matches!(bench.run(&log).await, Some(Ok(()))), "nothing is left to do");
}

#[tokio::test]
async fn a_convicted_lane_is_paid_for_what_was_right_and_stops() {
    let bench = Bench::new();
    let log = bench.computed(3);
    bench.run(&log).await;
    bench.chain.with(|l| {
        l.now += WINDOW + 5;
        l.lanes.get_mut(&lane(0)).unwrap().void_from = Some(1);
        l.job.state = tensorlink_node::ports::chain::JobState::Closing;
    });
    bench.run(&log).await;
    assert_eq!(bench.chain.with(|l| l.lanes[&lane(0)].finalized), 1);
    assert!(bench.run(&log).await.is_some(), "nothing is left to do");
}
