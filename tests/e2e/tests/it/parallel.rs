//! Several pipelines that train one decoder: replicas, which compute the same, and shares, which add up what they
//! compute. Whatever becomes of them, the bits are those of one pipeline that nothing happens to.

use tensorlink_node::ports::chain::{Event, Fault};
use tensorlink_types::B256;

use crate::harness::{Job, LIMIT, Network, Report, Subject, assert_claimed, quiet_run, unshared_run, worker_address};

/// The worker that plays all parts.
const VILLAIN: usize = 0;
/// Where it begins.
const STEP: u32 = 2;
const JOB: Job = Job {
    stages: 2,
    replicas: 1,
    steps: 40,
    steps_per_interval: 20,
    token: "sno",
    subject: Subject::KingJames,
    challenge_window: 6,
};

/// What `script/demo --train-lm` shows of a larger one.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_of_which_one_was_killed_come_to_what_an_undisturbed_run_would_have() {
    // The one that is killed has time to come back, however busy the machine is.
    let mut network = Network::staked(4, |parameters| parameters.sealWindow = 240).await;
    network.start_validator().await;
    network.start_workers(0..4).await;
    // Long enough to be in its middle when its first claims are on chain.
    let job = Job { replicas: 2, steps: 300, steps_per_interval: 30, ..JOB };
    job.post(&mut network);
    network.await_claim_of_each(&job, LIMIT).await;
    network.cut_worker(2);
    network.start_workers([2]).await;
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);
    let quiet = quiet_run(&network, &network.path("text.txt"), &report.posted()[0], report.keys()[0]);
    assert_all_claimed(&report, &job, &quiet);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_that_share_sequences_come_to_what_one_would_have() {
    come_to_what_one_pipeline_would_have(2, JOB).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_pipelines_that_share_sequences_come_to_what_one_would_have() {
    come_to_what_one_pipeline_would_have(2, Job { stages: 4, ..JOB }).await;
}

/// Sums go round a ring, of which each has two neighbours.
#[tokio::test(flavor = "multi_thread")]
async fn three_workers_that_share_sequences_come_to_what_one_would_have() {
    let subject = Subject::ThreeSequences;
    come_to_what_one_pipeline_would_have(3, Job { stages: 3, subject, ..JOB }).await;
}

/// So many shares have the whole model and their part of the sequences each; what they come to is what one alone comes
/// to with all of them.
async fn come_to_what_one_pipeline_would_have(shares: u16, job: Job) {
    let mut network = Network::start(job.stages.into()).await;
    network.start_workers(0..job.stages.into()).await;
    job.train(&mut network, &format!("shares = {shares}"));
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);
    let posted = (&report.posted()[0], report.keys()[0]);
    let alone = unshared_run(&network, &network.path("text.txt"), posted, job.stages / shares);
    assert_all_claimed(&report, &job, &alone);
}

/// Everybody has claimed every interval, and nothing but these states.
fn assert_all_claimed(report: &Report, job: &Job, states: &[Vec<B256>]) {
    let claims = report.claims();
    assert_eq!(claims.len(), job.claims());
    assert_claimed(&claims, states);
}

/// Of two pipelines that share sequences, the worker that adds up otherwise: the others took its word for the sums, and
/// are right.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_adds_up_gradients_wrongly_is_convicted_of_it() {
    let mut network = Network::start(4).await;
    network.start_workers(1..4).await;
    network.start_part(VILLAIN, (STEP, "combine", r#"{"flip":3}"#)).await;
    let job = Job { stages: 4, steps: 4, steps_per_interval: 4, challenge_window: 30, ..JOB };
    let mut command = job.posting(&network);
    command.args(["--shares", "2"]);
    network.spawn("user", command);
    let report = job.settled(&mut network, LIMIT).await;
    let convicted = report.pick(|event| match event {
        Event::Convicted { worker, fault, step, .. } => Some((*worker, *fault, *step)),
        _ => None,
    });
    assert_eq!(convicted, [(worker_address(VILLAIN), Fault::Element, STEP)]);
}
