//! Several pipelines that train one decoder: replicas, which compute the same, and shares, which add up what they compute. Whatever
//! becomes of them, the bits are those of one pipeline that nothing happens to.

use tensorlink_node::ports::chain::{Event, Fault};
use tensorlink_types::abi::JobTerms;
use tensorlink_types::{B256, JobKey};

use crate::harness::{Job, LIMIT, Network, Report, Subject, quiet_run, unshared_run, worker_address};

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
    let mut network = Network::start(4).await;
    network.start_workers(0..4).await;
    // Long enough to be in its middle when its first claims are on chain.
    let job = Job { replicas: 2, steps: 300, steps_per_interval: 30, ..JOB };
    job.post(&mut network);
    network.await_claim_of_each(&job, LIMIT).await;
    network.cut_worker(2);
    network.start_workers([2]).await;
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);
    let (terms, key) = posted(&report);
    assert_claimed(&report, &job, &quiet_run(&network, &network.path("text.txt"), &terms, key));
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

/// So many shares have the whole model and their part of the sequences each; what they come to is what one alone comes to with all of them.
async fn come_to_what_one_pipeline_would_have(shares: u16, job: Job) {
    let mut network = Network::start(job.stages.into()).await;
    network.start_workers(0..job.stages.into()).await;
    job.train(&mut network, &format!("shares = {shares}"));
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);
    let (terms, key) = posted(&report);
    let alone = unshared_run(&network, &network.path("text.txt"), (&terms, key), job.stages / shares);
    assert_claimed(&report, &job, &alone);
}

/// The terms and the key of the only job.
fn posted(report: &Report) -> (JobTerms, JobKey) {
    let terms = report.pick(|event| match event {
        Event::JobPosted { terms, .. } => Some(terms.clone()),
        _ => None,
    });
    let keys = report.pick(|event| match event {
        Event::JobStarted { job_key, .. } => Some(*job_key),
        _ => None,
    });
    (terms[0].clone(), keys[0])
}

/// Everybody has claimed every interval, and nothing but `states`: of each interval, of each stage that one pipeline has.
fn assert_claimed(report: &Report, job: &Job, states: &[Vec<B256>]) {
    let claims = report.pick(|event| match event {
        Event::ClaimCommitted { claim, .. } => Some(claim.clone()),
        _ => None,
    });
    assert_eq!(claims.len(), job.claims());
    for claim in claims {
        let (lane, of_interval) = (claim.lane(), &states[claim.interval as usize]);
        let expected = of_interval[usize::from(lane.stage) % of_interval.len()];
        assert_eq!(claim.newState, expected, "{lane} at {}", claim.interval);
    }
}

/// Of two pipelines that share sequences, the worker that adds up otherwise: the others took its word for the sums, and are right.
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
