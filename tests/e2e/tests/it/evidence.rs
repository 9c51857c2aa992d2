//! Workers that lie about what their neighbour sent them, or show auditors something else than they have signed.

use tensorlink_node::ports::chain::{Event, Fault};
use tensorlink_proof::challenge::Told;
use tensorlink_types::U256;

use crate::harness::{Job, LIMIT, Network, PURSE, Subject, VALIDATOR, address, sno, worker_address};

/// It sends, to who lies about it.
const SENDER: usize = 0;
const LIAR: usize = 1;
/// Long enough for an auditor that asks in vain to open a challenge.
const JOB: Job = Job {
    stages: 2,
    replicas: 1,
    steps: 40,
    steps_per_interval: 20,
    token: "sno",
    subject: Subject::Digits,
    challenge_window: 40,
};
/// In the second interval.
const STEP: (&str, &str) = ("STEP", "30");
/// Seconds that either side of a challenge has: who is silent is waited for so long.
const CLOCK: u32 = 30;

/// A liar at the last stage is convicted of a fault, in a challenge, and nobody else loses.
async fn assert_convicted(how: (&str, &str), fault: Fault) {
    // Nobody is drawn, so that the liar accuses nobody: the validator looks because it likes to.
    let network = Network::staked(2, |parameters| (parameters.disputeClock, parameters.auditsPerClaimBps) = (CLOCK, 0));
    let mut network = network.await;
    network.start_validator().await;
    network.start_workers([SENDER]).await;
    network.start_dear_villain_as(LIAR, &[STEP, how]).await;
    JOB.post(&mut network);
    let report = JOB.settled(&mut network, LIMIT).await;
    report.assert_accounts();

    let convicted = report.convicted();
    assert_eq!(convicted, [(worker_address(LIAR), address(VALIDATOR), fault)]);
    // The conviction ends the job, and the challenger then its challenge.
    let end = |event: &Event| match event {
        Event::Challenge { told: told @ (Told::Won { .. } | Told::Lost), .. } => Some(told.clone()),
        _ => None,
    };
    let ends = network.await_events("the challenge ends", LIMIT, end, 1).await;
    assert_eq!(ends, [Told::Won { silence: fault == Fault::Silence }]);

    let slashed = report.slashed();
    let [(worker, slash)] = slashed[..] else { panic!("one is slashed: {slashed:?}") };
    assert_eq!(worker, worker_address(LIAR));
    slash.assert_of_a_lane();
    network.await_auditor_owns(address(VALIDATOR), sno(PURSE) + slash.bounty, "its bond is back").await;
    for (worker, bonded) in [(SENDER, sno("2000")), (LIAR, sno("2000") - slash.amount)] {
        let stake = network.stake(worker).await;
        assert_eq!((U256::from(stake.bonded), stake.locked), (bonded, 0), "worker {worker}");
    }
    // What the liar received in its first interval was right. The sender's claims stand on their own.
    let paid = report.paid();
    assert_eq!(paid.get(&worker_address(LIAR)).map(|(claims, _)| *claims), Some(1), "{paid:?}");
    assert!(paid.get(&worker_address(SENDER)).is_some_and(|(claims, _)| *claims >= 1), "{paid:?}");
}

/// It has no signature of its neighbour's for what it logged, and so cannot answer for it (rule P-27).
#[tokio::test(flavor = "multi_thread")]
async fn who_computes_from_what_nobody_sent_it_is_convicted_of_silence() {
    assert_convicted(("HEARSAY", "true"), Fault::Silence).await;
}

/// Its logs are signed, and it shows auditors other inputs: these are worked out without it.
#[tokio::test(flavor = "multi_thread")]
async fn who_shows_other_inputs_than_it_computed_from_is_convicted_all_the_same() {
    assert_convicted(("COOK", "inputs"), Fault::Element).await;
}

/// All that it signs is what it computed. The wrong output itself it does not show: it is made to open it on chain.
#[tokio::test(flavor = "multi_thread")]
async fn who_shows_another_output_than_it_signed_is_convicted_all_the_same() {
    assert_convicted(("COOK", "output"), Fault::Element).await;
}
