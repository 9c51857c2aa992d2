//! A table of villains that compute something else than was asked, one after another on one network: each is convicted by its own answers,
//! for what it did, in its first claim.

use tensorlink_node::ports::chain::{Event, Fault};
use tensorlink_types::U256;

use crate::harness::{Job, LIMIT, Network, Subject, sno, worker_address};

/// The worker that plays all parts.
const VILLAIN: usize = 0;
/// One stage, which holds the whole model, and one interval.
const JOB: Job = Job {
    stages: 1,
    replicas: 1,
    steps: 12,
    steps_per_interval: 12,
    token: "sno",
    subject: Subject::Digits,
    challenge_window: 30,
};
/// Where most begin.
const STEP: u32 = 7;

/// What a villain does: in which step, to operators of which kind, what.
struct Part {
    name: &'static str,
    step: u32,
    operator: &'static str,
    deed: &'static str,
}

const CAST: [Part; 9] = [
    Part { name: "one element of the first step", step: 0, operator: "mat_mul", deed: r#"{"flip":5}"# },
    Part { name: "one element of the last step", step: 11, operator: "mat_mul", deed: r#"{"flip":5}"# },
    Part { name: "one element in the optimiser", step: STEP, operator: "combine", deed: r#"{"flip":3}"# },
    Part { name: "the witness of a maximum", step: STEP, operator: "row_max", deed: r#"{"flip":1}"# },
    Part { name: "no backward pass", step: STEP, operator: "relu_grad", deed: "skip" },
    Part { name: "stale weights", step: STEP, operator: "combine", deed: "stay" },
    Part { name: "other data", step: STEP, operator: "sample", deed: "skip" },
    Part { name: "another key of draws", step: STEP, operator: "sample", deed: "other_key" },
    Part { name: "a smaller model", step: STEP, operator: "mat_mul", deed: "halve" },
];

#[tokio::test(flavor = "multi_thread")]
async fn whoever_computes_something_else_is_convicted_of_it() {
    let mut network = Network::start(1).await;
    network.endow(VILLAIN, CAST.len()).await;
    let stake = sno(Job::STAKE);
    for (index, part) in CAST.iter().enumerate() {
        let before = network.stake(VILLAIN).await;
        network.start_part(VILLAIN, (part.step, part.operator, part.deed)).await;
        JOB.post(&mut network);
        let report = JOB.settled(&mut network, LIMIT).await;
        network.cut_worker(VILLAIN);

        let convicted = report.pick(|event| match event {
            Event::Convicted { worker, fault, step, claimed, recomputed, .. } => {
                assert_ne!(claimed, recomputed, "{}", part.name);
                Some((*worker, *fault, *step))
            }
            _ => None,
        });
        assert_eq!(convicted.len(), index + 1, "{}: {convicted:?}", part.name);
        let wanted = (worker_address(VILLAIN), Fault::Element, part.step);
        assert_eq!(convicted.last(), Some(&wanted), "{}", part.name);
        let after = network.stake(VILLAIN).await;
        assert_eq!(U256::from(before.bonded) - U256::from(after.bonded), stake, "{}", part.name);
        assert_eq!(after.locked, 0, "{}", part.name);
        assert_eq!(report.json["convictions"][0]["fault"], "element", "{}", part.name);
        assert!(report.paid().is_empty(), "{}: nothing is paid for a wrong claim", part.name);
    }
}
