//! Validators whose device computes wrongly, so that they find honest workers wrong: only they pay for it.

use tensorlink_node::ports::chain::Event;
use tensorlink_proof::challenge::Told;
use tensorlink_types::{Address, U256};

use crate::harness::{
    COLLATERAL, Job, LONG, Network, PURSE, Report, STAKE, Subject, VALIDATOR, address, sno, worker_address,
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
/// A step of the first interval, which the validator gets wrong.
const WRONG: (&str, &str) = ("STEP", "15");
/// Seconds that either side of a challenge has: enough for a whole game on a busy machine.
const CLOCK: u32 = 30;
/// Of a challenge, SNO.
const BOND: &str = "10";
/// SNO that a worker does not bond.
const PURSE_OF_WORKER: &str = "1000";
/// SNO that an auditor loses by a wrong answer: as much as the worker has at risk, of which the worker gets half.
const PENALTY: &str = Job::STAKE;

/// The job is finished and paid, nobody is convicted, and the one challenge is lost, its bond the worker's, with what
/// `further` it gained.
async fn assert_only_the_accuser_pays(network: &Network, report: &Report, further: U256) {
    report.assert_finished(&JOB);
    assert!(report.convicted().is_empty(), "{:?}", report.convicted());
    let (accuser, worker) = (address(VALIDATOR), worker_address(WORKER));
    let opened = report.pick(|event| match event {
        Event::ChallengeOpened { claim, challenger, worker, .. } => Some((claim.interval, *challenger, *worker)),
        _ => None,
    });
    assert_eq!(opened, [(0, accuser, worker)]);
    let ends = report.pick(|event| match event {
        Event::Challenge { told: told @ (Told::Won { .. } | Told::Lost), .. } => Some(told.clone()),
        _ => None,
    });
    assert_eq!(ends, [Told::Lost]);
    let stake = network.stake(WORKER).await;
    assert_eq!((U256::from(stake.bonded), stake.locked), (sno(STAKE), 0), "nothing was slashed");
    let earned = report.paid()[&worker].1;
    assert_eq!(network.owned(worker).await, sno(PURSE_OF_WORKER) + sno(BOND) + earned + further);
    let fees: U256 = report.audits().iter().map(|(_, _, fee)| *fee).sum();
    assert_eq!(network.owned(accuser).await, sno(PURSE) - sno(BOND) + fees);
}

/// It answers wrongly where the chain draws it, and takes the worker's accusation of it for a false one.
#[tokio::test(flavor = "multi_thread")]
async fn a_validator_that_computes_wrongly_convicts_nobody_and_pays_for_its_answer_and_its_challenge() {
    let mut network = Network::staked(1, |parameters| parameters.disputeClock = CLOCK).await;
    network.start_wrong_validator(&[WRONG]).await;
    network.start_workers([WORKER]).await;
    JOB.post(&mut network);
    let report = JOB.settled(&mut network, LONG).await;
    assert_only_the_accuser_pays(&network, &report, sno(PENALTY) / U256::from(2)).await;
    let penalties = report.pick(|event| match event {
        Event::AuditorPenalised { auditor, accuser, amount, .. } => Some((*auditor, *accuser, *amount)),
        _ => None,
    });
    let expected: [(Address, Address, U256); 1] = [(address(VALIDATOR), worker_address(WORKER), sno(PENALTY))];
    assert_eq!(penalties, expected, "for the interval that it got wrong");
    assert_eq!(network.stake_of_validator().await, sno(COLLATERAL) - sno(PENALTY));
}

/// The worker answers no auditor, so that it is made to answer on chain: there it says what is right.
#[tokio::test(flavor = "multi_thread")]
async fn a_validator_that_computes_wrongly_loses_the_challenge_that_it_opens_to_the_worker() {
    let mut network = Network::staked(1, |parameters| {
        parameters.disputeClock = CLOCK;
        parameters.auditsPerClaimBps = 0;
    })
    .await;
    network.start_wrong_validator(&[WRONG]).await;
    network.start_villain_as(WORKER, &[("HONEST", "true"), ("MUTE", "true")]).await;
    JOB.post(&mut network);
    let report = JOB.settled(&mut network, LONG).await;
    assert_only_the_accuser_pays(&network, &report, U256::ZERO).await;
    assert_eq!(network.stake_of_validator().await, sno(COLLATERAL));
}
