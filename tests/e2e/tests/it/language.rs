//! A decoder trained on text by strangers, and those among them who compute something else.

use std::time::Duration;

use tensorlink_node::ports::chain::{Event, Fault};

use crate::harness::{Job, Network, Subject, worker_address};

const LIMIT: Duration = Duration::from_secs(120);
/// The worker that plays all parts.
const VILLAIN: usize = 0;
const JOB: Job = Job {
    stages: 1,
    replicas: 1,
    steps: 4,
    steps_per_interval: 4,
    token: "sno",
    subject: Subject::KingJames,
    challenge_window: 30,
};
/// Where they begin.
const STEP: u32 = 2;

/// Operators of gradients, and what is done to them.
const GRADIENTS: [(&str, &str); 4] = [
    ("gather_grad", r#"{"flip":2}"#),
    ("inverse_norm", r#"{"flip":0}"#),
    // Of what a token sees: what it does not see leads nowhere, and is no wrong state.
    ("row_combine", r#"{"flip":0}"#),
    ("row_mul", r#"{"flip":9}"#),
];
/// The same of the optimiser, and of heads that share keys and values.
const OPTIMIZER: [(&str, &str); 4] = [
    ("group_sum", r#"{"flip":4}"#),
    ("ratio", r#"{"flip":5}"#),
    ("shrink", r#"{"flip":0}"#),
    ("at_step", r#"{"flip":0}"#),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_decoder_learns_on_two_workers() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    let job = Job { stages: 2, steps: 60, steps_per_interval: 20, challenge_window: 6, ..JOB };
    job.post(&mut network);
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_gives_other_gradients_is_convicted_of_it() {
    all_are_convicted(&GRADIENTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_another_step_is_convicted_of_it() {
    all_are_convicted(&OPTIMIZER).await;
}

/// One after another on one network, each in a job of its own.
async fn all_are_convicted(cast: &[(&str, &str)]) {
    let mut network = Network::start(1).await;
    network.endow(VILLAIN, cast.len()).await;
    for (index, (operator, deed)) in cast.iter().enumerate() {
        network.start_part(VILLAIN, (STEP, operator, deed)).await;
        JOB.post(&mut network);
        let report = JOB.settled(&mut network, LIMIT).await;
        network.cut_worker(VILLAIN);
        let convicted = report.pick(|event| match event {
            Event::Convicted { worker, fault, step, claimed, recomputed, .. } => {
                assert_ne!(claimed, recomputed, "{operator}");
                Some((*worker, *fault, *step))
            }
            _ => None,
        });
        assert_eq!(convicted.len(), index + 1, "{operator}: {convicted:?}");
        assert_eq!(convicted.last(), Some(&(worker_address(VILLAIN), Fault::Element, STEP)), "{operator}");
        assert!(report.paid().is_empty(), "{operator}: nothing is paid for a wrong claim");
    }
}
