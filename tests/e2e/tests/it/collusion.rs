//! Those who belong together, or would like to: replicas that share a lie, one that copies the other, and a liar that
//! convicts itself.

use tensorlink_node::ports::Chain;
use tensorlink_node::ports::chain::{Event, Fault};
use tensorlink_types::{Address, JobId, Lane, U256};

use crate::harness::{
    Job, LIMIT, Network, OBSERVER, PURSE, Slash, Subject, USER, VALIDATOR, address, eventually, sno, worker_address,
};

/// One stage and two intervals.
const JOB: Job = Job {
    stages: 1,
    replicas: 2,
    steps: 40,
    steps_per_interval: 20,
    token: "sno",
    subject: Subject::Digits,
    challenge_window: 40,
};

fn convicted(event: &Event) -> Option<(Address, Address, Fault, u32)> {
    match event {
        Event::Convicted { worker, auditor, fault, step, .. } => Some((*worker, *auditor, *fault, *step)),
        _ => None,
    }
}

/// No majority makes a number right: both say the same, and nobody says anything else.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_agree_on_a_lie_are_both_convicted_of_it() {
    const LIE: u32 = 30;
    let mut network = Network::start(2).await;
    for liar in 0..2 {
        network.start_villain(liar, LIE).await;
    }
    JOB.post(&mut network);
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_accounts();
    let differ = report.pick(|event| matches!(event, Event::ReplicasDiffer { .. }).then_some(()));
    assert!(differ.is_empty(), "they lied alike");

    let mut verdicts = report.pick(convicted);
    let verdict = |liar| (worker_address(liar), address(VALIDATOR), Fault::Element, LIE);
    let mut wanted = [0, 1].map(verdict);
    verdicts.sort_unstable_by_key(|(worker, ..)| *worker);
    wanted.sort_unstable_by_key(|(worker, ..)| *worker);
    assert_eq!(verdicts, wanted);
    for (_, slash) in report.slashed() {
        slash.assert_of_a_lane();
    }
    for liar in 0..2 {
        let stake = network.stake(liar).await;
        assert_eq!((U256::from(stake.bonded), stake.locked), (sno("1000"), 0), "the stake of one lane");
        let paid = report.paid().get(&worker_address(liar)).map(|(claims, _)| *claims);
        assert_eq!(paid, Some(1), "the interval before the lie was right");
    }
    let bounty = Slash::of_a_lane(false).bounty;
    network.await_auditor_owns(address(VALIDATOR), sno(PURSE) + bounty * U256::from(2), "two bounties").await;
}

/// The replica that a worker of the job's only stage was hired for.
async fn replica_of(network: &Network, worker: Address) -> u16 {
    let hired = network.await_event("the job is accepted", LIMIT, |event| match event {
        Event::JobAccepted { offers, .. } => {
            offers.iter().find(|offer| offer.worker == worker).map(|offer| offer.replica)
        }
        _ => None,
    });
    hired.await
}

/// When it seals there is nothing to copy yet, and what it has sealed it cannot exchange (rule P-24).
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_copies_has_sealed_something_else_and_gets_nothing() {
    const HONEST: usize = 0;
    const COPIER: usize = 1;
    let job = Job { challenge_window: 6, ..JOB };
    let mut network = Network::start(2).await;
    network.start_workers([HONEST]).await;
    network.start_villain_as(COPIER, &[("DEED", "skip"), ("COPY", "true")]).await;
    job.post(&mut network);
    network.said("worker-1", "WrongSeal", LIMIT).await;
    let lane = Lane { job: JobId(1), stage: 0, replica: replica_of(&network, worker_address(HONEST)).await };
    let all = || async { network.chain().lane(lane).await.unwrap().finalized == job.intervals() };
    eventually("the honest claims are final", LIMIT, async || all().await.then_some(())).await;
    // The copier keeps the job from its end, until its user has enough.
    network.ok(USER, &["job", "cancel", "1"]).await;
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_accounts();
    let paid: Vec<_> = report.paid().into_iter().map(|(who, (claims, _))| (who, claims)).collect();
    assert_eq!(paid, [(worker_address(HONEST), job.intervals())]);
    assert!(report.pick(convicted).is_empty() && report.slashed().is_empty(), "it has claimed nothing");
    for worker in [HONEST, COPIER] {
        let stake = network.stake(worker).await;
        assert_eq!((U256::from(stake.bonded), stake.locked), (sno("2000"), 0), "worker {worker}");
    }
    let claims = report.pick(|event| match event {
        Event::ClaimCommitted { claim, .. } => Some(claim.interval),
        _ => None,
    });
    assert_eq!(claims, [0, 1], "only the honest one's are on chain");
}

/// Its accomplice gets the finder's quarter, and that is all: to convict oneself costs three quarters of the stake and
/// what was claimed (rules P-7, P-45).
#[tokio::test(flavor = "multi_thread")]
async fn who_convicts_itself_by_another_key_loses_most_of_its_stake_and_its_claims() {
    const LIAR: usize = 0;
    let job = Job { replicas: 1, challenge_window: 90, ..JOB };
    // Nobody else looks.
    let network = Network::staked(1, |parameters| parameters.auditsPerClaimBps = 0);
    let mut network = network.await.at_rate("0");
    network.start_validator().await;
    // Who has a stake may ask workers.
    network.fund(address(OBSERVER), "1").await;
    network.ok(OBSERVER, &["stake", "1"]).await;
    let parties = [worker_address(LIAR), address(OBSERVER), address(USER)];
    let mut before = [U256::ZERO; 3];
    for (sum, party) in before.iter_mut().zip(parties) {
        *sum = network.owned(party).await;
    }
    network.start_villain(LIAR, 15).await;
    job.post(&mut network);
    network.await_claim_of_each(&job, LIMIT).await;
    let question = ["challenge", "--job", "1", "--stage", "0", "--interval", "0"];
    eventually("it convicts itself", LIMIT, async || network.run(OBSERVER, &question).await.ok.then_some(())).await;
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_accounts();

    assert_eq!(report.pick(convicted), [(worker_address(LIAR), address(OBSERVER), Fault::Element, 15)]);
    assert!(report.paid().is_empty(), "what it claimed is void");
    let slash = Slash::of_a_lane(false);
    assert_eq!(report.slashed(), [(worker_address(LIAR), slash)]);
    let bonded = network.stake(LIAR).await;
    assert_eq!((U256::from(bonded.bonded), bonded.locked), (sno("2000") - slash.amount, 0));
    let gained = [U256::ZERO, slash.bounty, slash.harm];
    for ((party, before), gained) in parties.into_iter().zip(before).zip(gained) {
        assert_eq!(
            network.owned(party).await,
            before + gained,
            "{party}: the deposit is back, and a share of the stake"
        );
    }
}
