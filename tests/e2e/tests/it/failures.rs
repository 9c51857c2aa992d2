//! Processes that die or stop, and jobs that are cancelled.

use std::time::Duration;

use alloy::providers::Provider;
use tensorlink_node::ports::Chain;
use tensorlink_node::ports::chain::Event;
use tensorlink_types::{JobId, Lane, U256};

use crate::harness::{FIRST_WORKER, Job, LIMIT, Network, OBSERVER, Report, Subject, USER, sno, worker_address};

/// Long enough to be in its middle, still computing, when its first claims are on chain: 20 s where nothing else runs.
const LONG: Job = Job {
    stages: 2,
    replicas: 1,
    steps: 4800,
    steps_per_interval: 600,
    token: "sno",
    subject: Subject::Digits,
    challenge_window: 5,
};

/// Meanwhile its user is told who is silent since when, by when it must act, and what to do if it does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_was_killed_takes_its_lane_up_again() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    LONG.post(&mut network);
    network.await_claim_of_each(&LONG, LIMIT).await;
    network.cut_worker(1);
    let killed = format!("replica 0, worker {}, tier C", worker_address(1));
    let silent = format!("{killed}: SILENT, last heard of");
    for said in [silent.as_str(), "must make its claims by", "`tensorlink job cancel 1`", "- left"] {
        network.said("user", said, LIMIT).await;
    }
    let status = network.ok(OBSERVER, &["job", "status", "1", "--json"]).await.json().remove(0);
    assert_eq!(status["lanes"].as_array().map(Vec::len), Some(2), "{status}");
    for lane in 0..2 {
        let lane = &status["lanes"][lane];
        assert_eq!((&lane["last_seen"]["what"], &lane["due"]["what"]), (&"claimed".into(), &"claim".into()), "{lane}");
        assert_eq!(lane["due"]["by"], status["deadline"], "{lane}");
    }
    let told = network.ok(OBSERVER, &["job", "status", "1"]).await.stdout;
    for part in ["last seen on chain", "must make its claims by", "`tensorlink job cancel 1`"] {
        assert!(told.contains(part), "`{part}` is not in {told}");
    }
    network.start_workers([1]).await;
    network.said("user", &format!("{killed}: heard of again"), LIMIT).await;
    let report = LONG.settled(&mut network, LIMIT).await;
    report.assert_finished(&LONG);
}

/// What it cannot go on with is said once; jobs that have ended are no concern of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_data_are_lost_says_so_once_and_leaves_alone_what_has_ended() {
    let mut network = Network::start(2).await;
    let lost = network.path(&format!("data-{}", FIRST_WORKER + 1));
    network.start_workers(0..2).await;
    LONG.post(&mut network);
    network.await_claim_of_each(&LONG, LIMIT).await;
    network.cut_worker(1);
    std::fs::remove_dir_all(&lost).unwrap();
    network.start_workers([1]).await;
    let told = "the data folder lacks the claims and states of 1 lanes";
    network.said("worker-1", told, LIMIT).await;
    network.ok(USER, &["job", "cancel", "1"]).await;
    network.ended("user", LIMIT).await;
    let (_, log) = network.stop("worker-1");
    assert_eq!(log.matches("ERROR").count(), 1, "{log}");

    std::fs::remove_dir_all(&lost).unwrap();
    network.start_workers([1]).await;
    LONG.post(&mut network);
    // What happened before has been told by then.
    network.said("worker-1", "accepted lane=job 2", LIMIT).await;
    let (_, log) = network.stop("worker-1");
    let about = |line: &&str| (line.contains("ERROR") || line.contains("WARN")) && line.contains("job 1");
    assert_eq!(log.lines().find(about), None, "{log}");
    assert!(!log.contains("lacks"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_lags_is_paid_all_the_same() {
    let job = Job { stages: 1, replicas: 2, ..LONG };
    let report = lagging(&job, 60).await;
    report.assert_finished(&job);
}

/// Who comes with an interval after its time has nothing to lose but its pay; and holds nobody up.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_lags_for_too_long_loses_nothing_but_its_pay() {
    let job = Job { stages: 1, replicas: 2, ..LONG };
    let report = lagging(&job, 5).await;
    report.assert_accounts();
    assert!(report.slashed().is_empty(), "{}", report.json);
    let (claims, _) = report.paid()[&worker_address(0)];
    assert_eq!(claims, job.intervals(), "{}", report.json);
    assert!(report.json["held_out_percent"].is_number(), "{}", report.json);
}

/// The second of two replicas stands still for a while, where each has so many seconds for an interval.
async fn lagging(job: &Job, window: u32) -> Report {
    let mut network = Network::staked(2, |parameters| parameters.sealWindow = window).await;
    network.start_validator().await;
    network.start_workers(0..2).await;
    job.post(&mut network);
    network.await_claim_of_each(job, LIMIT).await;
    network.hang_worker(1, Duration::from_secs(15)).await;
    job.settled(&mut network, LIMIT).await
}

/// Its lane waits; its neighbour waits for it; nobody is slashed, and no process is started again.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_disk_is_full_goes_on_when_there_is_room() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_bounded_worker(1).await;
    LONG.post(&mut network);
    network.await_claim_of_each(&LONG, LIMIT).await;
    // Its store is larger by now; its log and its records are not.
    network.set_room(1, Some(256 << 10));
    network.said("worker-1", "the lane waits for the disk", LIMIT).await;
    network.set_room(1, None);
    let report = LONG.settled(&mut network, LIMIT).await;
    report.assert_finished(&LONG);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_pays_what_is_claimed_and_returns_the_rest() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    LONG.post(&mut network);
    network.await_claim_of_each(&LONG, LIMIT).await;
    let done = network.ok(USER, &["job", "cancel", "1", "--json"]).await.json();
    assert_eq!(done[0]["job"], 1);
    let report = LONG.settled(&mut network, LIMIT).await;
    report.assert_accounts();
    let claims: u32 = report.paid().values().map(|(claims, _)| *claims).sum();
    assert_eq!(f64::from(claims), report.number("claims_committed"), "every claim is paid: {:?}", report.paid());
    assert!((2..LONG.claims()).contains(&(claims as usize)), "cancelled in its middle: {claims} claims");
    assert!(report.slashed().is_empty() && report.json["held_out_percent"].is_null(), "{}", report.json);
    for worker in 0..2 {
        let stake = network.stake(worker).await;
        assert_eq!((stake.locked, U256::from(stake.bonded)), (0, sno("2000")), "worker {worker}'s stake is free again");
    }
    let again = network.run(USER, &["job", "cancel", "1"]).await;
    assert!(!again.ok, "a settled job cannot be cancelled: {}", again.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_hangs_for_a_while_costs_nothing_but_time() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    LONG.post(&mut network);
    network.await_claim_of_each(&LONG, LIMIT).await;
    network.hang_chain(Duration::from_secs(10)).await;
    let report = LONG.settled(&mut network, LIMIT).await;
    report.assert_finished(&LONG);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_restarted_costs_nothing_but_time() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    LONG.post(&mut network);
    network.await_claim_of_each(&LONG, LIMIT).await;
    network.restart_chain().await;
    let report = LONG.settled(&mut network, LIMIT).await;
    report.assert_finished(&LONG);
}

/// Nobody but the worker is there to do it again: its user is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_last_finality_a_reorganisation_undid_is_paid_all_the_same() {
    let mut network = Network::start(1).await;
    network.start_workers([0]).await;
    let job = Job { stages: 1, steps: 20, ..Job::default() };
    job.post(&mut network);
    let started = network.await_event("the job starts", LIMIT, |event| match event {
        Event::JobStarted { .. } => Some(()),
        _ => None,
    });
    started.await;
    network.cut("user");
    // Its receipt has told the worker so, and nothing is left to do for it but to settle.
    network.said("worker-0", "claims final", LIMIT).await;
    let lane = Lane { job: JobId(1), stage: 0, replica: 0 };
    assert_eq!(network.chain().lane(lane).await.unwrap().finalized, job.intervals());
    let events = network.events().await;
    let first = events.iter().find(|at| matches!(at.event, Event::ClaimsFinalized { .. })).unwrap().block;
    network.reorganise_from(first).await;
    assert_eq!(network.chain().lane(lane).await.unwrap().finalized, 0, "it is undone");

    let settled = network.await_event("the worker settles the job", LIMIT, |event| match event {
        Event::JobSettled { .. } => Some(()),
        _ => None,
    });
    settled.await;
    assert_eq!(network.chain().lane(lane).await.unwrap().finalized, job.intervals());
    let paid = network.await_event("it is paid", LIMIT, |event| match event {
        Event::Paid { worker, units, .. } => Some((*worker, *units)),
        _ => None,
    });
    assert_eq!(paid.await, (worker_address(0), job.intervals()));
    assert_eq!(network.stake(0).await.locked, 0, "its stake is free again");
}

/// Everybody waits for one confirmation, and far more blocks than that are replaced, with claims in them.
#[tokio::test(flavor = "multi_thread")]
async fn a_reorganisation_far_beyond_the_confirmations_costs_nothing_but_time() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    LONG.post(&mut network);
    let claims = |event: &Event| matches!(event, Event::ClaimCommitted { .. }).then_some(());
    let started = |event: &Event| matches!(event, Event::JobStarted { .. }).then_some(());
    network.await_event("the job starts", LIMIT, started).await;
    network.await_claim_of_each(&LONG, LIMIT).await;
    let events = network.events().await;
    let start = events.iter().find(|at| started(&at.event).is_some()).unwrap().block;
    let first = events.iter().find(|at| claims(&at.event).is_some()).unwrap().block;
    // The start stays; of the claims none does.
    let () = network.provider().client().request("anvil_mine", (4,)).await.unwrap();
    network.said("worker-0", "claim committed", LIMIT).await;
    network.reorganise_from(first.max(start + 1)).await;
    network.said("worker-0", "is folded anew", LIMIT).await;
    let report = LONG.settled(&mut network, LIMIT).await;
    report.assert_finished(&LONG);
}
