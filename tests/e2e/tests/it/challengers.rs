//! Those who challenge, and a user who closes: what they do to shield a liar, to hurt an honest worker, to take
//! another's bounty, or at the worst moment; and one who is interrupted.

use tensorlink_node::ports::Call;
use tensorlink_node::ports::chain::{Chain, Event, Fault};
use tensorlink_proof::challenge::{Move, Told};
use tensorlink_types::abi::{Claim, Question};
use tensorlink_types::{Address, B256, U256};

use crate::harness::{
    Job, LIMIT, LONG, Network, OBSERVER, PURSE, Slash, Subject, USER, VALIDATOR, address, eventually, run, sno,
    worker_address,
};

/// Seconds that a challenger has who asks nothing.
const CLOCK: u32 = 20;
const WORKER: usize = 0;
/// One stage and two intervals.
const JOB: Job = Job {
    stages: 1,
    replicas: 1,
    steps: 40,
    steps_per_interval: 20,
    token: "sno",
    subject: Subject::Digits,
    challenge_window: 20,
};
/// In the first interval.
const LIE: u32 = 15;

/// Opens a challenge of the first claim as soon as it is on chain, and never asks anything.
async fn challenge_and_leave(network: &Network) {
    let (claim, committed_at) = first_claim(network).await;
    let open = Move::Open { claim, committed_at, question: Question { levels: 5, ..Question::default() } };
    let opened = network.chain().send(Call::Challenge { challenge: U256::ZERO, step: Box::new(open) }).await.unwrap();
    assert!(opened.events.iter().any(|event| matches!(event, Event::ChallengeOpened { .. })));
}

async fn first_claim(network: &Network) -> (Claim, u64) {
    let claim = network.await_event("the first claim", LIMIT, |event| match event {
        Event::ClaimCommitted { claim, committed_at, .. } => Some((claim.clone(), *committed_at)),
        _ => None,
    });
    claim.await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_without_substance_pays_the_worker_and_ends() {
    let mut network = Network::staked(1, |parameters| parameters.disputeClock = CLOCK).await;
    network.start_validator().await;
    network.fund(address(OBSERVER), "10").await;
    network.start_workers([WORKER]).await;
    JOB.post(&mut network);
    challenge_and_leave(&network).await;
    let report = JOB.settled(&mut network, LONG).await;
    report.assert_finished(&JOB);
    assert_eq!(report.pick(ended), [Told::Lost]);
    let (token, worker) = (network.deployment().sno, worker_address(WORKER));
    let has = network.owned(worker).await;
    let earned = report.paid()[&worker].1;
    assert_eq!(has, sno("1000") + sno("10") + earned, "what it did not stake, the bond, and its pay");
    assert_eq!(network.chain().balance(address(OBSERVER), token).await.unwrap(), U256::ZERO);
    assert_eq!(U256::from(network.stake(WORKER).await.bonded), sno("2000"), "nothing was slashed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_friends_challenge_shields_nobody() {
    let mut network = Network::start(1).await;
    network.fund(address(OBSERVER), "10").await;
    network.start_villain(WORKER, LIE).await;
    JOB.post(&mut network);
    challenge_and_leave(&network).await;
    let report = JOB.settled(&mut network, LONG).await;
    report.assert_accounts();
    assert_convicted(&network, &report.pick(convicted)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_that_closes_its_job_right_after_the_lie_saves_nobody() {
    let mut network = Network::start(1).await;
    network.start_villain(WORKER, LIE).await;
    JOB.post(&mut network);
    first_claim(&network).await;
    // Too late is possible: the validator may have been faster.
    let closed = network.run(USER, &["job", "cancel", "1"]).await;
    let report = JOB.settled(&mut network, LONG).await;
    report.assert_accounts();
    assert_convicted(&network, &report.pick(convicted)).await;
    assert!(report.paid().is_empty(), "{closed:?}");
}

/// The transaction that convicts, and its block.
async fn conviction(network: &Network) -> Option<(B256, u64)> {
    let events = network.events().await;
    let convicts = |event: &Event| matches!(event, Event::Convicted { .. });
    events.iter().find(|at| convicts(&at.event)).map(|at| (at.transaction, at.block))
}

/// A proof names its auditor (rule P-17): who copies it and gets in first pays the gas of another's bounty.
#[tokio::test(flavor = "multi_thread")]
async fn who_sends_anothers_proof_first_gets_nothing_for_it() {
    let mut network = Network::start(1).await;
    network.start_villain(WORKER, LIE).await;
    let job = Job { challenge_window: 30, ..JOB };
    job.post(&mut network);
    first_claim(&network).await;
    // On a busy machine it could see the job settled before that is undone, and leave.
    network.cut("user");
    let (seen, block) = eventually("the conviction", LIMIT, async || conviction(&network).await).await;
    network.cut_validator();
    let proof = network.chain().mined(seen).await.unwrap().and_then(|mined| mined.proof).unwrap();
    // Its block is undone; in the one that takes its place the stranger's copy comes first.
    network.reorganise_from(block).await;
    assert_eq!(conviction(&network).await, None, "it is undone");
    let copied = network.chain().send(proof).await.unwrap();
    Job::watch(&mut network);
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_accounts();

    assert_convicted(&network, &report.pick(convicted)).await;
    assert_eq!(conviction(&network).await.map(|(transaction, _)| transaction), Some(copied.transaction));
    let auditors = report.pick(|event| match event {
        Event::Convicted { auditor, .. } => Some(*auditor),
        _ => None,
    });
    assert_eq!(auditors, [address(VALIDATOR)]);
    let bounty = Slash::of_a_lane(false).bounty;
    network.await_auditor_owns(address(VALIDATOR), sno(PURSE) + bounty, "the bounty is the auditor's").await;
    assert_eq!(network.owned(address(OBSERVER)).await, U256::ZERO, "whoever sends the proof");
}

/// Nobody else looks: no validator runs. The worker answers nobody, so that only its answers on chain convict it.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_interrupted_in_a_challenge_takes_it_up_again_without_a_second_bond() {
    let mut network = Network::staked(1, |_| ()).await;
    // As much as two bonds.
    network.fund(address(OBSERVER), "20").await;
    network.start_villain_as(WORKER, &[("STEP", &LIE.to_string()), ("MUTE", "true")]).await;
    network.join_through(WORKER).await;
    let job = Job { challenge_window: 60, ..JOB };
    job.post(&mut network);
    let (_, committed_at) = first_claim(&network).await;
    eventually("the claim is confirmed", LIMIT, async || {
        let head = network.chain().head().await.unwrap();
        (head.timestamp > committed_at).then_some(())
    })
    .await;
    let forced = ["--json", "challenge", "--job", "1", "--stage", "0", "--interval", "0", "--force"];
    let first = network.command(OBSERVER, &forced);
    network.spawn("challenger", first);
    let answered = network.await_event("the first answer", LONG, |event| match event {
        Event::Challenge { told: Told::Answered { .. }, .. } => Some(()),
        _ => None,
    });
    answered.await;
    network.cut("challenger");
    let again = run(network.command(OBSERVER, &forced), LONG).await;
    assert_eq!(again.json()[0]["verdict"], "forced", "{again:?}");
    let report = job.settled(&mut network, LONG).await;
    report.assert_accounts();

    let opened = report.pick(|event| match event {
        Event::ChallengeOpened { challenger, .. } => Some(*challenger),
        _ => None,
    });
    assert_eq!(opened, [address(OBSERVER)], "one challenge, and one bond");
    assert_eq!(report.pick(ended), [Told::Won { silence: false }]);
    assert_convicted(&network, &report.pick(convicted)).await;
    let bounty = Slash::of_a_lane(false).bounty;
    assert_eq!(network.owned(address(OBSERVER)).await, sno("20") + bounty, "the bond is back");
}

fn ended(event: &Event) -> Option<Told> {
    match event {
        Event::Challenge { told: told @ (Told::Won { .. } | Told::Lost), .. } => Some(told.clone()),
        _ => None,
    }
}

fn convicted(event: &Event) -> Option<(Address, Fault)> {
    match event {
        Event::Convicted { worker, fault, .. } => Some((*worker, *fault)),
        _ => None,
    }
}

async fn assert_convicted(network: &Network, convicted: &[(Address, Fault)]) {
    assert_eq!(convicted, [(worker_address(WORKER), Fault::Element)]);
    assert_eq!(U256::from(network.stake(WORKER).await.bonded), sno("1000"), "the stake of one lane");
}
