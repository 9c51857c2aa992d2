//! Claims of replicas are sealed before they are revealed, whatever happens to receipts, restarts, blocks and
//! other replicas.

use tensorlink_node::ports::chain::{Event, JobState};
use tensorlink_proof::commit::seal;
use tensorlink_types::{B256, Lane};
use tensorlink_worker::record::{Interval, LaneLog};
use tensorlink_worker::training::claimant::ClaimsError;
use tensorlink_worker::training::claims;
use tensorlink_worker::training::sealing::{salt, told};

use crate::bench::{Bench, INTERVALS, claim};
use crate::support::{CONTRACTS, JOB, SEAL_WINDOW, WINDOW, identity, lane};

const OTHER: u16 = 1;

impl Bench {
    /// The other replica seals, too.
    fn other_seals(&self, interval: u32) {
        self.chain.with(|l| l.seals.insert((0, interval, OTHER), (B256::repeat_byte(9), l.now)));
    }

    /// All seals and claims that are on chain are confirmed.
    fn confirm(&self, log: &LaneLog) {
        let (seals, claims) = self.chain.with(|l| (l.seals.clone(), l.claims.clone()));
        for ((stage, interval, replica), (seal, sealed_at)) in seals {
            let lane = Lane { job: JOB, stage, replica };
            told(log, &Event::ClaimSealed { lane, interval, seal, sealed_at }).unwrap();
        }
        for (claim, committed_at) in claims.into_values() {
            claims::confirmed(log, &claim, committed_at).unwrap();
            told(log, &Event::ClaimCommitted { id: CONTRACTS.claim_id(&claim), claim, committed_at }).unwrap();
        }
    }
}

/// The worker has computed the interval after its first.
fn computes_another(log: &LaneLog) {
    log.update(|record| {
        let logs = record.intervals[&0].logs.clone();
        record.intervals.insert(1, Interval::new(claim(1), logs, String::new(), String::new()));
        record.next = 2;
    })
    .unwrap();
}

#[tokio::test]
async fn claims_are_sealed_at_once_and_revealed_when_all_have_sealed() {
    let bench = Bench::new(2);
    let log = bench.computed(INTERVALS);
    bench.run(&log).await;
    bench.confirm(&log);
    bench.run(&log).await;
    assert_eq!((bench.sent("seal"), bench.sent("reveal"), bench.sent("commit")), (3, 0, 0), "the other has not sealed");
    assert_eq!((log.get().unsealed(), log.get().uncommitted()), (0, 3));
    let first = bench.chain.with(|l| l.seals[&(0, 0, 0)].0);
    let id = CONTRACTS.claim_id(&claim(0));
    assert_eq!(first, seal(id, salt(&identity(7), id).unwrap()));

    (0..INTERVALS).for_each(|interval| bench.other_seals(interval));
    bench.run(&log).await;
    assert_eq!(bench.sent("reveal"), 0, "a seal that is not confirmed can be undone, and ours copied");
    bench.confirm(&log);
    bench.run(&log).await;
    assert_eq!((bench.sent("seal"), bench.sent("reveal"), log.get().uncommitted()), (3, 3, 0));
    bench.chain.with(|l| l.now += 2 * WINDOW + 5);
    assert!(matches!(bench.run(&log).await, Some(Ok(()))));
    assert_eq!(bench.chain.with(|l| l.lanes[&lane(0)].finalized), INTERVALS);
}

#[tokio::test]
async fn who_does_not_seal_is_waited_for_once() {
    let bench = Bench::new(2);
    let log = bench.computed(2);
    bench.run(&log).await;
    bench.confirm(&log);
    bench.chain.with(|l| l.now = l.first_seal(0, 0).unwrap() + SEAL_WINDOW - 1);
    bench.run(&log).await;
    assert_eq!(bench.sent("reveal"), 0);
    bench.chain.with(|l| l.now += 3);
    bench.run(&log).await;
    assert_eq!(bench.sent("reveal"), 1, "of the second the first reveal before is not confirmed");
    bench.confirm(&log);
    // Who was late is not waited for: all who sealed the first have sealed the second.
    bench.run(&log).await;
    assert_eq!(bench.sent("reveal"), 2);
}

#[tokio::test]
async fn a_kill_between_seal_and_reveal_loses_nothing() {
    let bench = Bench::new(2);
    let log = bench.computed(1);
    bench.chain.with(|l| l.lose_receipt = true);
    bench.run(&log).await;
    assert_eq!((bench.sent("seal"), log.get().unsealed()), (1, 1), "mined, and its receipt lost");
    bench.other_seals(0);
    // Even the whole data folder may be lost: the claim is computed again and the salt is the same.
    drop(log);
    let bench = Bench { chain: bench.chain, folder: tempfile::tempdir().unwrap() };
    let log = bench.computed(1);
    bench.run(&log).await;
    bench.confirm(&log);
    let log = bench.log();
    bench.run(&log).await;
    assert_eq!((bench.sent("seal"), bench.sent("reveal"), log.get().uncommitted()), (1, 1, 0));
}

#[tokio::test]
async fn a_reveal_whose_receipt_was_lost_is_not_made_twice() {
    let bench = Bench::new(2);
    let log = bench.computed(1);
    bench.other_seals(0);
    bench.run(&log).await;
    bench.confirm(&log);
    bench.chain.with(|l| l.lose_receipt = true);
    bench.run(&log).await;
    let log = bench.log();
    bench.run(&log).await;
    assert_eq!((bench.sent("reveal"), log.get().uncommitted()), (1, 1));
    bench.confirm(&log);
    assert_eq!(log.get().uncommitted(), 0);
}

#[tokio::test]
async fn seals_and_reveals_that_a_reorganisation_undid_are_made_again() {
    let bench = Bench::new(2);
    let log = bench.computed(2);
    bench.run(&log).await;
    bench.chain.with(|l| l.seals.clear());
    bench.run(&log).await;
    assert_eq!(bench.sent("seal"), 4, "both again");
    (0..2).for_each(|interval| bench.other_seals(interval));
    bench.confirm(&log);
    bench.run(&log).await;
    assert_eq!(bench.sent("reveal"), 2);
    bench.chain.with(|l| l.claims.clear());
    bench.run(&log).await;
    assert_eq!((bench.sent("seal"), bench.sent("reveal")), (4, 4));
}

#[tokio::test]
async fn who_is_too_late_is_paid_for_what_it_claimed_and_stops() {
    let bench = Bench::new(2);
    let log = bench.computed(1);
    bench.other_seals(0);
    bench.run(&log).await;
    bench.confirm(&log);
    bench.run(&log).await;
    bench.other_seals(1);
    bench.chain.with(|l| l.now += SEAL_WINDOW);
    computes_another(&log);
    assert!(matches!(bench.run(&log).await, Some(Ok(()))), "its first claim is final, more it cannot make");
    assert_eq!(log.get().barred_from, Some(1));
    assert_eq!((bench.sent("reveal"), bench.chain.with(|l| l.lanes[&lane(0)].finalized)), (1, 1));
}

/// A worker that stood still wakes up with seals that nobody else could reveal: without them the job would wait for
/// its deadline.
#[tokio::test]
async fn who_is_too_late_for_an_interval_still_reveals_what_it_sealed_before() {
    let bench = Bench::new(2);
    let log = bench.computed(1);
    bench.other_seals(0);
    bench.run(&log).await;
    assert_eq!((bench.sent("seal"), bench.sent("reveal")), (1, 0), "nothing is confirmed yet");
    // It stands still while the other goes on, and has computed one more when it looks again.
    bench.other_seals(1);
    bench.chain.with(|l| l.now += SEAL_WINDOW);
    bench.confirm(&log);
    computes_another(&log);
    bench.run(&log).await;
    assert_eq!((log.get().barred_from, bench.sent("reveal")), (Some(1), 1), "the first is revealed all the same");
    bench.chain.with(|l| l.now += 2 * WINDOW);
    assert!(matches!(bench.run(&log).await, Some(Ok(()))), "and final");
    assert_eq!(bench.chain.with(|l| l.lanes[&lane(0)].finalized), 1);
}

#[tokio::test]
async fn what_was_sealed_is_revealed_when_the_job_is_closed() {
    let bench = Bench::new(2);
    let log = bench.computed(2);
    bench.run(&log).await;
    bench.confirm(&log);
    bench.chain.with(|l| l.job.state = JobState::Closing);
    assert!(bench.run(&log).await.is_none(), "not done");
    assert_eq!(bench.sent("reveal"), 0, "the closing is not confirmed");
    told(&log, &Event::JobClosing { job: JOB, convicted: false }).unwrap();
    bench.run(&log).await;
    assert_eq!(bench.sent("reveal"), 2);
}

#[tokio::test]
async fn another_seal_in_our_name_stops_the_lane() {
    let bench = Bench::new(2);
    bench.chain.with(|l| l.seals.insert((0, 0, 0), (B256::repeat_byte(5), 1)));
    let log = bench.computed(1);
    assert!(matches!(bench.run(&log).await, Some(Err(ClaimsError::Foreign(0)))));
}

#[tokio::test]
async fn claims_that_differ_wait_twice_as_long() {
    let bench = Bench::new(2);
    let log = bench.computed(1);
    bench.other_seals(0);
    bench.run(&log).await;
    bench.confirm(&log);
    bench.run(&log).await;
    let event = Event::ReplicasDiffer { claim: CONTRACTS.claim_id(&claim(0)), job: JOB, stage: 0, interval: 0 };
    told(&log, &event).unwrap();
    let at = log.get().intervals[&0].committed_at.unwrap();
    bench.held(&log, 0);
    assert!(log.get().finalizable(0, WINDOW, at + 2 * WINDOW - 1, 9).0.is_empty());
    assert_eq!(log.get().finalizable(0, WINDOW, at + 2 * WINDOW, 9).0.len(), 1);
}
