//! Validators that the chain draws: what they are paid for, and what becomes of those who do not look, or who are
//! accused by a liar.

use std::fs;

use tensorlink_node::ports::Chain;
use tensorlink_node::ports::chain::{Event, Fault};
use tensorlink_types::{Address, U256};

use crate::harness::{
    COLLATERAL, Job, LIMIT, Network, PURSE, Slash, Subject, VALIDATOR, address, eventually, sno, worker_address,
};

const WORKER: usize = 0;
/// One stage and two intervals, with quarters of the window that are long enough to compute in on a busy machine.
const JOB: Job = Job {
    stages: 1,
    replicas: 1,
    steps: 40,
    steps_per_interval: 20,
    token: "sno",
    subject: Subject::Digits,
    challenge_window: 80,
};
/// What an auditor that is wrong loses: as much as the worker has at risk.
const PENALTY: &str = Job::STAKE;

/// A network whose validator looks only at what it is drawn for: everything, being the only one.
async fn network() -> Network {
    Network::start_at_rate(1, "0").await
}

fn penalised(event: &Event) -> Option<(Address, Address, U256)> {
    match event {
        Event::AuditorPenalised { auditor, accuser, amount, .. } => Some((*auditor, *accuser, *amount)),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_drawn_answers_and_is_paid_from_the_escrow() {
    let mut network = network().await;
    network.start_workers([WORKER]).await;
    JOB.post(&mut network);
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_finished(&JOB);
    let price = report.prices()[&worker_address(WORKER)];
    let fee = price * U256::from(5) / U256::from(4);
    let audits = report.audits();
    assert_eq!(
        audits.iter().map(|(_, auditor, paid)| (*auditor, *paid)).collect::<Vec<_>>(),
        [(address(VALIDATOR), fee), (address(VALIDATOR), fee)]
    );
    assert_ne!(audits[0].0, audits[1].0);
    assert_eq!(network.owned(address(VALIDATOR)).await, sno(PURSE) + fee * U256::from(2));
    assert!(report.pick(penalised).is_empty());
    assert_eq!(network.stake_of_validator().await, sno(COLLATERAL));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_look_is_accused_by_the_worker_and_penalised() {
    let mut network = network().await;
    network.cut_validator();
    network.start_lazy_validator().await;
    network.start_workers([WORKER]).await;
    JOB.post(&mut network);
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_finished(&JOB);
    let penalties = network.await_events("both answers are penalised", LIMIT, penalised, 2).await;
    let (auditor, worker) = (address(VALIDATOR), worker_address(WORKER));
    // With the first penalty it is no validator any more: what it was drawn for before still counts.
    assert_eq!(penalties, [(auditor, worker, sno(PENALTY)), (auditor, worker, sno(PENALTY))]);
    assert_eq!(network.stake_of_validator().await, sno(COLLATERAL) - sno(PENALTY) * U256::from(2));
    let earned = report.paid()[&worker].1;
    assert_eq!(
        network.owned(worker).await,
        sno("1000") + sno(PENALTY) + earned,
        "what it did not stake, half of both penalties, and its pay"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_accuses_an_auditor_that_was_right_is_convicted_of_its_own_word() {
    let mut network = network().await;
    network.start_villain_as(WORKER, &[("FRAME", "true")]).await;
    JOB.post(&mut network);
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_accounts();
    let (auditor, worker) = (address(VALIDATOR), worker_address(WORKER));
    assert_eq!(report.convicted(), [(worker, auditor, Fault::Contradiction)]);
    assert_eq!(U256::from(network.stake(WORKER).await.bonded), sno("1000"), "the stake of one lane");
    assert!(report.pick(penalised).is_empty());
    assert_eq!(network.stake_of_validator().await, sno(COLLATERAL), "an honest auditor loses nothing");
    assert!(!report.audits().is_empty(), "it was paid, too");
    // Having sealed, it has the other half of the bounty as well (rule P-45): for each answer a part.
    let slash = Slash::of_a_lane(true);
    assert_eq!(report.slashed(), [(worker, slash)]);
    eventually("its shares are paid", LIMIT, async || {
        let shares = network.events().await.into_iter().filter_map(|at| match at.event {
            Event::AuditorShared { auditor: whose, amount, .. } if whose == auditor => Some(amount),
            _ => None,
        });
        (shares.sum::<U256>() == slash.shared).then_some(())
    })
    .await;
    network.await_auditor_owns(auditor, sno(PURSE) + slash.bounty, "both halves").await;
}

/// An outage in the quarter in which answers are shown costs the fee, and nothing else (rule P-46), also if it begins
/// before the validator has noted that the seal is on chain.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_away_when_answers_are_shown_shows_its_own_later() {
    let mut network = network().await;
    network.start_workers([WORKER]).await;
    JOB.post(&mut network);
    network.said("validator", "an answer is sealed lane=job 1 stage 0 replica 0 interval=0", LIMIT).await;
    network.cut_validator();
    let journal = network.path(&format!("data-{VALIDATOR}/journal/answers.json"));
    let noted = fs::read_to_string(&journal).unwrap();
    assert!(noted.contains("\"computed\"") || noted.contains("\"sealed\""), "{noted}");
    fs::write(&journal, noted.replace("\"sealed\"", "\"computed\"")).unwrap();
    let unstake = ["unstake", "--role", "validator", COLLATERAL];
    let refused = network.run(VALIDATOR, &unstake).await;
    assert!(!refused.ok && refused.stderr.contains("AnswersSealed"), "{}", refused.stderr);
    assert!(refused.stderr.contains("tensorlink forfeit"), "{}", refused.stderr);

    let claim = |event: &Event| match event {
        Event::ClaimCommitted { id, committed_at, .. } => Some((*id, *committed_at)),
        _ => None,
    };
    let (first, fixed_at) = network.await_event("the first claim", LIMIT, claim).await;
    let too_late = fixed_at + u64::from(JOB.challenge_window) / 2;
    let is_late = async || (network.chain().head().await.unwrap().timestamp >= too_late).then_some(());
    eventually("its quarter is over", LIMIT, is_late).await;
    network.start_validator().await;
    let fee = network.await_event("it shows its answer", LIMIT, |event| match event {
        Event::AuditRevealed { claim, fee, .. } if *claim == first => Some(*fee),
        _ => None,
    });
    assert_eq!(fee.await, U256::ZERO);
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_finished(&JOB);
    eventually("it can leave", LIMIT, async || network.run(VALIDATOR, &unstake).await.ok.then_some(())).await;
}
