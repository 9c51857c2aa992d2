//! Jobs in which somebody lies.

use std::time::Duration;

use tensorlink_node::ports::Chain;
use tensorlink_node::ports::chain::{Event, Fault};
use tensorlink_proof::challenge::Told;
use tensorlink_types::{Address, U256};

use crate::harness::{Job, Network, PURSE, Report, VALIDATOR, address, sno, worker_address};

const LIMIT: Duration = Duration::from_secs(120);
/// A game on chain, or waiting for a worker's clock, takes longer.
const LONG: Duration = Duration::from_secs(300);
/// Long enough for an audit on a busy machine, so that the verdict comes before finality.
const WINDOW: u32 = 20;
/// Worker 1 lies.
const LIAR: usize = 1;

/// A job whose second interval holds a lie.
const JOB: Job =
    Job { stages: 2, replicas: 1, steps: 60, steps_per_interval: 20, token: "sno", challenge_window: WINDOW };
const LIE: u32 = 30;

#[tokio::test(flavor = "multi_thread")]
async fn one_wrong_element_costs_the_stake_and_nobody_else_loses() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_villain(LIAR, LIE).await;
    JOB.post(&mut network);
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_accounts();

    let convicted = report.pick(|event| match event {
        Event::Convicted { worker, auditor, fault, step, claimed, recomputed, .. } => {
            assert_ne!(claimed, recomputed);
            Some((*worker, *auditor, *fault, *step))
        }
        _ => None,
    });
    assert_eq!(convicted, [(worker_address(LIAR), address(VALIDATOR), Fault::Element, LIE)]);

    // Just what was at risk in this lane, split as the contracts say: half to the auditor, 30 % to the user, the rest burned.
    let amount = sno(Job::STAKE);
    let (bounty, harm) = (amount / U256::from(2), amount * U256::from(3) / U256::from(10));
    assert_eq!(report.slashed(), [(worker_address(LIAR), amount, bounty, harm, amount - bounty - harm)]);
    let stake = network.stake(LIAR).await;
    assert_eq!((U256::from(stake.bonded), stake.locked), (sno("2000") - amount, 0));
    let stake = network.stake(0).await;
    assert_eq!((U256::from(stake.bonded), stake.locked), (sno("2000"), 0), "the honest worker lost nothing");

    // The lie is in the second interval: the liar's first claim was right and is paid, later ones are void.
    let paid = report.paid();
    assert_eq!(paid.get(&worker_address(LIAR)).map(|(claims, _)| *claims), Some(1), "{paid:?}");
    let honest = paid.get(&worker_address(0)).map_or(0, |(claims, _)| *claims);
    assert!((1..=JOB.intervals()).contains(&honest), "the honest lane is paid for what is final: {paid:?}");
    let voided = report.pick(|event| match event {
        Event::ClaimsVoided { lane, from } => Some((lane.stage, *from)),
        _ => None,
    });
    assert_eq!(voided.iter().map(|(_, from)| *from).min(), Some(1), "{voided:?}");
    assert!(report.refund() > U256::ZERO);
    assert_eq!(report.json["convictions"][0]["fault"], "element");
    assert!(report.json["held_out_percent"].is_null(), "an unfinished job has no model to test: {}", report.json);
    let token = network.deployment().sno;
    let auditor = address(VALIDATOR);
    let gained = network.chain().balance(auditor, token).await.unwrap() + network.credit(auditor, token).await;
    assert_eq!(gained, sno(PURSE) + bounty, "the bounty is new");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validator_that_was_away_still_convicts() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_villain(LIAR, LIE).await;
    JOB.post(&mut network);
    // The lie comes to the chain while nobody looks.
    let started = network.await_event("the job starts", LIMIT, |event| match event {
        Event::JobStarted { .. } => Some(()),
        _ => None,
    });
    started.await;
    network.cut_validator();
    let wrong = network.await_event("the wrong claim", LIMIT, |event| match event {
        Event::ClaimCommitted { claim, .. } if claim.interval == LIE / JOB.steps_per_interval => Some(()),
        _ => None,
    });
    wrong.await;
    let unseen = network.events().await.iter().all(|at| !matches!(at.event, Event::Convicted { .. }));
    assert!(unseen, "somebody looked");
    network.start_validator().await;
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_accounts();
    let slashed: Vec<Address> = report.slashed().iter().map(|slashed| slashed.0).collect();
    assert_eq!(slashed, [worker_address(LIAR)]);
}

/// Two replicas of one stage, one of which lies in one element, and a validator that draws no claim at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_differs_is_examined_though_nobody_drew_it() {
    let mut network = Network::start_at_rate(2, "0").await;
    network.start_workers([0]).await;
    network.start_villain(LIAR, LIE).await;
    let job = Job { stages: 1, replicas: 2, ..JOB };
    job.post(&mut network);
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_accounts();

    let wrong = LIE / job.steps_per_interval;
    let differ = report.pick(|event| match event {
        Event::ReplicasDiffer { stage, interval, .. } => Some((*stage, *interval)),
        _ => None,
    });
    assert_eq!(differ.first(), Some(&(0, wrong)), "{differ:?}");
    assert!(differ.iter().all(|(_, interval)| *interval >= wrong), "what was right was the same: {differ:?}");
    let convicted = report.pick(|event| match event {
        Event::Convicted { worker, auditor, fault, step, .. } => Some((*worker, *auditor, *fault, *step)),
        _ => None,
    });
    assert_eq!(convicted, [(worker_address(LIAR), address(VALIDATOR), Fault::Element, LIE)]);
    let slashed: Vec<Address> = report.slashed().iter().map(|slashed| slashed.0).collect();
    assert_eq!(slashed, [worker_address(LIAR)], "nobody else");

    // Both had revealed the interval in which they differ: the honest one is paid for it and for the one before.
    let paid = report.paid();
    let honest = paid.get(&worker_address(0)).map_or(0, |(claims, _)| *claims);
    assert!((wrong + 1..=job.intervals()).contains(&honest), "{paid:?}");
    assert_eq!(paid.get(&worker_address(LIAR)).map(|(claims, _)| *claims), Some(wrong), "{paid:?}");
    let stake = network.stake(0).await;
    assert_eq!((U256::from(stake.bonded), stake.locked), (sno("2000"), 0), "the honest worker lost nothing");
    assert_eq!(report.json["differences"][0], format!("stage 0, interval {wrong}"));
}

/// What a challenge cost and brought: its answers, how it ended, and that the auditor has its bond and the bounty.
async fn assert_forced(network: &Network, report: &Report, fault: Fault) -> usize {
    let convicted = report.pick(|event| match event {
        Event::Convicted { worker, auditor, fault, .. } => Some((*worker, *auditor, *fault)),
        _ => None,
    });
    assert_eq!(convicted, [(worker_address(LIAR), address(VALIDATOR), fault)]);
    let ends = report.pick(|event| match event {
        Event::Challenge { told: Told::Won { silence }, .. } => Some(*silence),
        Event::Challenge { told: Told::Lost, .. } => panic!("a challenge was lost"),
        _ => None,
    });
    assert_eq!(ends, [fault == Fault::Silence]);
    let slashed: Vec<Address> = report.slashed().iter().map(|slashed| slashed.0).collect();
    assert_eq!(slashed, [worker_address(LIAR)], "nobody else");
    let (token, auditor) = (network.deployment().sno, address(VALIDATOR));
    let has = network.chain().balance(auditor, token).await.unwrap();
    assert_eq!(has, sno(PURSE) + sno(Job::STAKE) / U256::from(2), "bond and bounty");
    let answers =
        report.pick(|event| matches!(event, Event::Challenge { told: Told::Answered { .. }, .. }).then_some(()));
    answers.len()
}

/// A job whose claims can be challenged for longer than it takes to see that a worker does not answer.
const SLOW: Job = Job { challenge_window: 60, ..JOB };

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_no_auditor_is_walked_to_its_lie_on_chain() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_mute_villain(LIAR, LIE).await;
    SLOW.post(&mut network);
    // The validator is killed in the middle of the game, and finds it again.
    let answered = network.await_event("the first answer", LONG, |event| match event {
        Event::Challenge { told: Told::Answered { .. }, .. } => Some(()),
        _ => None,
    });
    answered.await;
    network.cut_validator();
    network.start_validator().await;
    let report = SLOW.settled(&mut network, LONG).await;
    report.assert_accounts();
    let answers = assert_forced(&network, &report, Fault::Element).await;
    assert!(answers >= 3, "steps, statement and output at least: {answers}");
    let step = report.pick(|event| match event {
        Event::Convicted { step, .. } => Some(*step),
        _ => None,
    });
    assert_eq!(step, [LIE]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_gone_when_its_lie_is_challenged_is_convicted_of_silence() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_mute_villain(LIAR, LIE).await;
    SLOW.post(&mut network);
    let hired = network.await_event("the job is accepted", LONG, |event| match event {
        Event::JobAccepted { offers, .. } => {
            offers.iter().find(|offer| offer.worker == worker_address(LIAR)).map(|offer| offer.stage)
        }
        _ => None,
    });
    let (stage, interval) = (hired.await, LIE / JOB.steps_per_interval);
    let wrong = network.await_event("the wrong claim", LONG, |event| match event {
        Event::ClaimCommitted { claim, .. } if (claim.stage, claim.interval) == (stage, interval) => Some(()),
        _ => None,
    });
    wrong.await;
    network.cut_worker(LIAR);
    let report = SLOW.settled(&mut network, LONG).await;
    report.assert_accounts();
    assert_eq!(assert_forced(&network, &report, Fault::Silence).await, 0, "it said nothing");
}
