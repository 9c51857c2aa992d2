//! Data that is withheld: from the user, from whoever demands it on chain; and honest workers of whom it is demanded.

use serde_json::Value;
use tensorlink_node::ports::Chain;
use tensorlink_node::ports::chain::{Event, Fault};
use tensorlink_proof::custody::sent_over;
use tensorlink_types::abi::DemandKind;
use tensorlink_types::{Address, B256, U256};

use crate::harness::{
    Job, LIMIT, LONG, Network, OBSERVER, Purses, Report, Slash, Subject, address, sno, worker_address,
};

/// Seconds that a holder has.
const CLOCK: u32 = 20;
/// The bond of a demand, SNO.
const BOND: &str = "10";
/// Worker 1 asks less, and so gets the first stage; the last stage's states are kept by it, and its own by worker 0.
const VILLAIN: usize = 1;
/// Two stages and two intervals, in a window that leaves time for a demand.
const JOB: Job = Job {
    stages: 2,
    replicas: 1,
    steps: 40,
    steps_per_interval: 20,
    token: "sno",
    subject: Subject::Digits,
    challenge_window: 30,
};

/// A network in which somebody who has no part in the job can pay for demands, and may ask.
async fn network() -> Network {
    let mut network = Network::staked(2, |parameters| parameters.disputeClock = CLOCK).await;
    network.start_validator().await;
    network.fund(address(OBSERVER), "100").await;
    network.ok(OBSERVER, &["stake", "1"]).await;
    network
}

/// Demands a part of a lane's first state, once it is claimed, and awaits what comes of it.
async fn demand(network: &Network, stage: u16, further: &[&str]) -> Value {
    network
        .await_event("the first claim", LIMIT, |event| match event {
            Event::ClaimCommitted { claim, .. } if claim.stage == stage => Some(()),
            _ => None,
        })
        .await;
    let stage = stage.to_string();
    let mut command = network.command(OBSERVER, &["--json", "demand", "--job", "1", "--stage", &stage]);
    command.args(further);
    crate::harness::run(command, LONG).await.json().pop().unwrap()
}

/// The stage that a worker has in the job.
fn stage_of(report: &Report, worker: usize) -> u16 {
    let stages = report.pick(|event| match event {
        Event::JobAccepted { offers, .. } => {
            offers.iter().find(|o| o.worker == worker_address(worker)).map(|o| o.stage)
        }
        _ => None,
    });
    stages[0]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_its_worker_keeps_for_itself_comes_from_its_keeper() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_villain_as(VILLAIN, &[("KEEP_RESULT", "true")]).await;
    let job = Job { challenge_window: 8, ..JOB };
    job.post(&mut network);
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);
    assert!(report.json["held_out_percent"].is_number(), "the user has the whole model: {}", report.json);
    assert!(stage_of(&report, VILLAIN) < 2);
}

/// A checkpoint that was damaged is told by its root.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_is_not_the_claimed_one_is_left_for_its_keepers() {
    let mut network = Network::start(2).await;
    network.start_workers([0]).await;
    network.start_villain_as(VILLAIN, &[("HONEST", "true"), ("COOK", "state")]).await;
    let job = Job { challenge_window: 8, ..JOB };
    job.post(&mut network);
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);
    assert!(report.number("held_out_percent") > 50.0, "the user has what was claimed: {}", report.json);
}

#[tokio::test(flavor = "multi_thread")]
async fn honest_workers_show_what_is_demanded_and_are_paid_the_bond() {
    let mut network = network().await;
    network.start_workers([0, 1]).await;
    // Four demands, one after another, each through some blocks: all of them before the claims are final.
    let job = Job { challenge_window: 100, ..JOB };
    job.post(&mut network);
    let demands = [
        (&["--interval", "0", "--leaves", "64"][..], "of a state, from its worker"),
        (&["--interval", "0", "--keeper"], "of a state, from its keeper"),
        (
            &["--interval", "0", "--sent-to", "previous", "--leaves", "64"],
            "of what was sent to a neighbour that got it",
        ),
        (&["--initial-state"], "of the state that a stage began with"),
    ];
    for (further, what) in demands {
        let ended = demand(&network, 1, further).await;
        assert_eq!(ended["outcome"], "delivered", "{what}: {ended}");
        assert!(ended["bytes"].as_u64().is_some_and(|bytes| bytes > 0 && bytes % 256 == 0), "{what}: {ended}");
    }
    let report = job.settled(&mut network, LONG).await;
    report.assert_finished(&job);
    assert!(report.convicted().is_empty());
    let token = network.deployment().sno;
    let left = network.chain().balance(address(OBSERVER), token).await.unwrap();
    assert_eq!(left, sno("99") - sno(BOND) * U256::from(demands.len()));
    let shown = report.pick(|event| match event {
        Event::Demanded { demand, .. } => Some(demand.holder),
        _ => None,
    });
    let own = report.pick(|event| match event {
        Event::JobAccepted { offers, .. } => Some((offers[0].worker, offers[1].worker)),
        _ => None,
    });
    let (first, second) = own[0];
    assert_eq!(shown, [second, first, second, second]);
    for (worker, bonds) in [(first, 1u64), (second, 3)] {
        let earned = report.paid()[&worker].1;
        assert_eq!(network.owned(worker).await, sno("1000") + earned + sno(BOND) * U256::from(bonds));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_show_the_state_of_its_claim_is_convicted_of_silence() {
    let report = withheld(&["--interval", "0"]).await;
    assert_eq!(report.convicted(), [(worker_address(VILLAIN), address(OBSERVER), Fault::Silence)]);
    let void = report.pick(|event| match event {
        Event::ClaimsVoided { from, .. } => Some(*from),
        _ => None,
    });
    assert_eq!(void, [0], "what nobody can see is not paid");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gave_its_word_for_a_state_and_does_not_show_it_loses_its_stake() {
    let report = withheld(&["--interval", "0", "--keeper"]).await;
    assert_withheld(&report);
    assert!(report.paid().contains_key(&worker_address(0)), "the worker whose keeper it was is paid all the same");
}

/// Every worker of a stage has its files, and shows them: without them nobody could go on where it left.
#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_show_the_files_of_its_stage_loses_its_stake() {
    let report = withheld(&["--initial-state"]).await;
    assert_withheld(&report);
    let asked = report.pick(|event| match event {
        Event::Demanded { demand, .. } => Some((DemandKind::from_number(demand.kind), demand.claimId)),
        _ => None,
    });
    assert_eq!(asked, [(Some(DemandKind::Files), B256::ZERO)], "of no claim");
}

/// The villain loses its stake for what it does not show, and nothing is wrong with anybody's claims.
fn assert_withheld(report: &Report) {
    assert_eq!(report.convicted(), [(worker_address(VILLAIN), address(OBSERVER), Fault::Withholding)]);
    let void = report.pick(|event| match event {
        Event::ClaimsVoided { from, .. } => Some(*from),
        _ => None,
    });
    assert!(void.is_empty(), "{void:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_claims_and_withholds_its_attestation_from_its_neighbour_is_convicted_by_it() {
    let mut network = network().await;
    network.start_workers([0]).await;
    network.start_villain_as(VILLAIN, &[("HUSH", "true"), ("TONGUE", "withholding")]).await;
    // A quarter of the window is waited; what is left of it must do for the demand.
    let job = Job { challenge_window: 40, ..JOB };
    job.post(&mut network);
    let report = job.settled(&mut network, LONG).await;
    report.assert_accounts();
    assert_eq!(report.convicted(), [(worker_address(VILLAIN), worker_address(0), Fault::Silence)]);
    assert_eq!(sent_demands(&report), [(worker_address(VILLAIN), worker_address(0))], "once is enough");
    assert_eq!(U256::from(network.stake(0).await.bonded), sno("2000"), "the honest worker lost nothing");
    let (bounty, paid) = (Slash::of_a_lane(false).bounty, report.paid().get(&worker_address(0)).map(|paid| paid.1));
    assert_eq!(
        network.owned(worker_address(0)).await,
        sno("1000") + bounty + paid.unwrap_or_default(),
        "the bond is back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attestation_that_a_neighbour_gives_on_chain_only_is_taken_from_there() {
    let mut network = network().await;
    network.start_workers([0]).await;
    network.start_villain_as(VILLAIN, &[("HUSH", "true")]).await;
    let job = Job { challenge_window: 40, ..JOB };
    job.post(&mut network);
    let honest = worker_address(0);
    let token = network.deployment().sno;
    let shown = network.await_event("the attestation is shown", LIMIT, |event| match event {
        Event::AttestationGiven { id, .. } => Some(*id),
        _ => None,
    });
    assert_eq!(shown.await, U256::from(1));
    network
        .await_event("the neighbour's claim", LIMIT, |event| match event {
            Event::ClaimCommitted { claim, .. } if claim.stage == 1 && claim.interval == 0 => Some(()),
            _ => None,
        })
        .await;
    assert_eq!(
        network.chain().balance(honest, token).await.unwrap(),
        sno("1000") - sno(BOND),
        "the bond is the neighbour's"
    );
    let slashed = network.events().await.into_iter().any(|at| matches!(at.event, Event::Convicted { .. }));
    assert!(!slashed, "who shows what it has is not convicted");
}

/// Who demanded of whom what it says it sent.
fn sent_demands(report: &Report) -> Vec<(Address, Address)> {
    report.pick(|event| match event {
        Event::Demanded { demand, .. } if sent_over(demand).is_some() => Some((demand.holder, demand.demander)),
        _ => None,
    })
}

/// Demands something of a worker that shows nothing: of its own lane, or of the lane that it keeps.
async fn withheld(what: &[&str]) -> Report {
    let mut network = network().await;
    let before = Purses::of(&network, 2).await;
    network.start_workers([0]).await;
    network.start_villain_as(VILLAIN, &[("HONEST", "true"), ("TONGUE", "withholding")]).await;
    JOB.post(&mut network);
    let own = network
        .await_event("the job is accepted", LIMIT, |event| match event {
            Event::JobAccepted { offers, .. } => {
                offers.iter().find(|offer| offer.worker == worker_address(VILLAIN)).map(|offer| offer.stage)
            }
            _ => None,
        })
        .await;
    // With two stages each lane is kept by the other.
    let stage = if what.contains(&"--keeper") { 1 - own } else { own };
    let ended = demand(&network, stage, what).await;
    assert_eq!(ended["outcome"], "convicted", "{ended}");
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_accounts();
    let verdict = report.verdict(&network).await;
    assert_eq!((verdict.challenges, verdict.transactions), (0, 2), "the demand, and what ends it: {verdict}");
    before.assert_only_stakes_paid(&network, &report).await;
    assert_eq!(U256::from(network.stake(0).await.bonded), sno("2000"), "the honest worker lost nothing");
    let (token, bounty) = (network.deployment().sno, verdict.slash.bounty);
    let left = network.chain().balance(address(OBSERVER), token).await.unwrap();
    assert_eq!(left, sno("99") + bounty, "the bond is back, and the bounty there");
    report
}
