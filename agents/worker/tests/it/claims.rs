//! Claims get on chain once, whatever happens to receipts, restarts and blocks.

use tensorlink_node::ports::chain::JobState;
use tensorlink_types::B256;
use tensorlink_types::abi::Claim;
use tensorlink_worker::record::{self, LaneRecord};
use tensorlink_worker::training::claimant::ClaimsError;
use tensorlink_worker::training::claims;

use crate::bench::{Bench, INTERVALS, claim};
use crate::support::{self, CONTRACTS, WINDOW, lane, ports};

#[tokio::test]
async fn each_claim_is_committed_once_and_final_after_its_window() {
    let bench = Bench::new(1);
    let log = bench.computed(INTERVALS);
    assert!(bench.run(&log).await.is_none(), "the window is open");
    assert_eq!((bench.sent("commit"), bench.sent("finalize")), (3, 0));
    assert_eq!(log.get().uncommitted(), 0);
    bench.chain.with(|l| l.now += WINDOW + 5);
    assert!(bench.run(&bench.log()).await.is_none(), "nobody else has the state: the window passes twice");
    assert_eq!(bench.sent("finalize"), 0);
    bench.chain.with(|l| l.now += WINDOW);
    assert!(matches!(bench.run(&bench.log()).await, Some(Ok(()))));
    assert_eq!((bench.sent("commit"), bench.sent("finalize")), (3, 1));
    assert_eq!(bench.chain.with(|l| l.lanes[&lane(0)].finalized), INTERVALS);
}

#[tokio::test]
async fn one_holders_word_makes_the_claims_up_to_it_final_after_one_window() {
    let bench = Bench::new(1);
    let log = bench.computed(INTERVALS);
    bench.run(&log).await;
    bench.held(&log, 1);
    bench.chain.with(|l| l.now += WINDOW + 5);
    assert!(bench.run(&log).await.is_none(), "nobody else has the last state");
    assert_eq!(bench.chain.with(|l| l.lanes[&lane(0)].finalized), 2);
    let asked =
        || log.get().unheld(INTERVALS - 1, 0).iter().map(|interval| interval.claim.interval).collect::<Vec<_>>();
    assert_eq!(asked(), [2]);
    bench.held(&log, 2);
    assert!(matches!(bench.run(&log).await, Some(Ok(()))));
    assert_eq!((bench.sent("finalize"), bench.chain.with(|l| l.lanes[&lane(0)].finalized)), (2, INTERVALS));
    assert!(asked().is_empty());
}

#[tokio::test]
async fn claims_before_one_that_is_held_back_become_final() {
    let bench = Bench::new(1);
    let log = bench.computed(INTERVALS);
    bench.run(&log).await;
    bench.chain.with(|l| {
        l.now += 2 * WINDOW + 5;
        l.challenged = Some(1);
    });
    assert!(bench.run(&log).await.is_none());
    assert_eq!(bench.chain.with(|l| l.lanes[&lane(0)].finalized), 1);
    bench.chain.with(|l| l.challenged = None);
    assert!(matches!(bench.run(&log).await, Some(Ok(()))));
}

#[tokio::test]
async fn an_attestation_that_the_contract_does_not_take_is_dropped_and_the_user_asked_from_then_on() {
    let bench = Bench::new(1);
    let log = bench.computed(INTERVALS);
    bench.run(&log).await;
    bench.held(&log, 2);
    // The attestation is now of somebody who has no part in the job.
    bench.chain.with(|l| {
        l.job.user = support::USER;
        l.now += WINDOW + 5;
    });
    assert!(bench.run(&log).await.is_none());
    let record = log.get();
    assert!(record.keeper_failed && record.intervals[&2].holder.is_none());
    assert_eq!(bench.chain.with(|l| l.lanes[&lane(0)].finalized), 0);
    bench.chain.with(|l| l.now += WINDOW);
    assert!(matches!(bench.run(&log).await, Some(Ok(()))), "without an attestation, later");
}

#[tokio::test]
async fn states_that_others_keep_are_a_part_of_the_window_apart() {
    let bench = Bench::new(1);
    let log = bench.computed(INTERVALS);
    bench.run(&log).await;
    let asked = |last, apart| {
        let record = log.get();
        record.unheld(last, apart).iter().map(|interval| interval.claim.interval).collect::<Vec<_>>()
    };
    assert_eq!(asked(9, 100), [2], "the first is asked for at once, for the newest");
    bench.held(&log, 1);
    assert_eq!((asked(9, 0), asked(9, 100)), (vec![2], vec![]));
    assert_eq!(asked(2, 100), [2], "the job's last is always kept");
    log.update(|record| record.closing = true).unwrap();
    assert_eq!(asked(9, 100), [2], "so is that of a job which ends");
    log.update(|record| record.kept_by_others = Some(0)).unwrap();
    assert_eq!(asked(9, 100), [0, 2], "and what all stages have kept, though it is older than what is kept");
    bench.held(&log, 0);
    assert_eq!(asked(9, 100), [2]);
    log.update(|record| record.kept_by_others = Some(2)).unwrap();
    assert_eq!(asked(9, 100), [2], "once");
    log.update(|record| record.kept_by_others = Some(3)).unwrap();
    assert_eq!(asked(9, 100), [2], "this lane has not claimed it yet");
}

/// A block a claim: the first of them are old before the last are made.
#[tokio::test]
async fn claims_become_final_while_others_queue() {
    let intervals = 6 * WINDOW as u32;
    let bench = Bench::new(1);
    bench.chain.with(|l| l.job.intervals = intervals);
    let log = bench.computed(intervals);
    for _ in 0..20 {
        if log.get().uncommitted() > 0 {
            bench.run(&log).await;
        }
    }
    let sent = bench.chain.with(|l| l.sent.clone());
    let commits: Vec<usize> =
        sent.iter().enumerate().filter(|(_, sent)| **sent == "commit").map(|(at, _)| at).collect();
    let first_final = sent.iter().position(|sent| *sent == "finalize");
    assert_eq!(commits.len(), intervals as usize);
    let waited = commits.iter().filter(|at| first_final.is_none_or(|first| **at < first)).count();
    assert!(waited <= 4 * WINDOW as usize, "{waited} of {intervals} claims were made before any was final");
}

#[tokio::test]
async fn a_claim_whose_receipt_was_lost_is_not_made_twice() {
    let bench = Bench::new(1);
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
    let bench = Bench::new(1);
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
    let bench = Bench::new(1);
    let log = bench.computed(1);
    bench.run(&log).await;
    let before = log.get().intervals[&0].committed_at.unwrap();
    claims::confirmed(&log, &claim(0), before + 3).unwrap();
    let entry = bench.log().get().intervals[&0].clone();
    assert_eq!((entry.committed_at, entry.confirmed), (Some(before + 3), true), "on disk");
}

#[tokio::test]
async fn claims_that_a_reorganisation_undid_are_made_again() {
    let bench = Bench::new(1);
    let log = bench.computed(3);
    bench.run(&log).await;
    let at = bench.chain.with(|l| l.claims[&(0, 0)].1);
    claims::confirmed(&log, &claim(0), at).unwrap();
    bench.chain.with(|l| l.claims.retain(|(_, interval), _| *interval == 0));
    bench.run(&log).await;
    assert_eq!((bench.sent("commit"), bench.chain.with(|l| l.claims.len())), (5, 3));
}

/// However many blocks deep, and whatever was confirmed or final.
#[tokio::test]
async fn claims_that_were_confirmed_and_undone_are_made_again_at_any_depth() {
    let intervals = 70;
    for depth in [1, 4, 64, intervals] {
        let bench = Bench::new(1);
        bench.chain.with(|l| l.job.intervals = intervals);
        let log = bench.computed(intervals);
        while log.get().uncommitted() > 0 {
            bench.run(&log).await;
        }
        for n in 0..intervals {
            let at = bench.chain.with(|l| l.claims[&(0, n)].1);
            claims::confirmed(&log, &claim(n), at).unwrap();
        }
        let stay = intervals - depth;
        bench.chain.with(|l| {
            l.claims.retain(|(_, interval), _| *interval < stay);
            for lane in l.lanes.values_mut() {
                lane.finalized = lane.finalized.min(stay);
            }
        });
        // Anew by the log that a restart finds.
        let log = bench.log();
        bench.run(&log).await;
        while log.get().uncommitted() > 0 {
            bench.run(&log).await;
        }
        assert_eq!(bench.sent("commit"), (intervals + depth) as usize, "{depth}");
        assert_eq!(bench.chain.with(|l| l.claims.len()), intervals as usize);
    }
}

#[tokio::test]
async fn what_events_told_is_forgotten_and_what_was_computed_stays() {
    let bench = Bench::new(1);
    let log = bench.computed(2);
    bench.run(&log).await;
    claims::confirmed(&log, &claim(0), bench.chain.with(|l| l.claims[&(0, 0)].1)).unwrap();
    let before = log.get();
    log.update(|record| {
        (record.over, record.closing, record.barred_from) = (true, true, Some(1));
        record.take_back();
    })
    .unwrap();
    let after = bench.log().get();
    assert!(!after.over && !after.closing && after.barred_from.is_none() && after.lineage.is_none(), "on disk");
    assert!(!after.intervals[&0].confirmed);
    assert_eq!((after.next, after.next_state.clone()), (before.next, before.next_state));
    let claims = |record: &LaneRecord| record.intervals.values().map(|i| i.claim.clone()).collect::<Vec<_>>();
    assert_eq!(claims(&after), [claim(0), claim(1)]);
}

/// A process that is killed after the events were cut, and before it took back what it wrote down of them.
#[tokio::test]
async fn what_was_undone_is_taken_back_at_the_next_start_once() {
    let bench = Bench::new(1);
    let end = || bench.log().update(|record| (record.over, record.closing) = (true, true)).unwrap();
    let start = async |undone| {
        let ports = ports(7, bench.chain.clone(), Default::default(), Default::default(), bench.folder.path());
        record::take_back(&ports, undone).await.unwrap();
        bench.log().get()
    };
    end();
    assert!(start(0).await.over, "nothing was undone");
    let record = start(1).await;
    assert!(!record.over && !record.closing);
    end();
    assert!(start(1).await.over, "it is told anew");
    bench.chain.with(|l| l.job.state = JobState::Settled);
    assert!(start(2).await.over, "settled all the same");
}

#[tokio::test]
async fn a_job_past_its_deadline_is_closed_and_what_was_claimed_is_paid() {
    let bench = Bench::new(1);
    let log = bench.computed(1);
    bench.run(&log).await;
    bench.chain.with(|l| l.now = l.job.deadline + 1);
    bench.run(&log).await;
    assert_eq!((bench.sent("cancel"), bench.sent("finalize")), (1, 1));
    assert!(matches!(bench.run(&log).await, Some(Ok(()))), "nothing is left to do");
}

#[tokio::test]
async fn a_convicted_lane_is_paid_for_what_was_right_and_stops() {
    let bench = Bench::new(1);
    let log = bench.computed(3);
    bench.run(&log).await;
    bench.chain.with(|l| {
        l.now += 2 * WINDOW + 5;
        l.lanes.get_mut(&lane(0)).unwrap().void_from = Some(1);
        l.job.state = JobState::Closing;
    });
    bench.run(&log).await;
    assert_eq!(bench.chain.with(|l| l.lanes[&lane(0)].finalized), 1);
    assert!(bench.run(&log).await.is_some(), "nothing is left to do");
}
