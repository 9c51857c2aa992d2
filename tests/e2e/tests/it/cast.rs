//! A table of villains that compute something else than was asked, one after another on one network: each is convicted
//! by its own answers, for what it did, in its first claim.

use tensorlink_node::ports::chain::{Event, Fault};

use crate::harness::{Job, LIMIT, Network, Purses, Subject, VALIDATOR, address, worker_address};

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
    /// What it is convicted of.
    fault: Fault,
}

/// Whatever it is: in the end some element of some output is wrong, and what the villain signed itself shows it.
const PART: Part = Part { name: "", step: STEP, operator: "mat_mul", deed: "skip", fault: Fault::Element };

const CAST: [Part; 9] = [
    Part { name: "one element of the first step", step: 0, deed: r#"{"flip":5}"#, ..PART },
    Part { name: "one element of the last step", step: 11, deed: r#"{"flip":5}"#, ..PART },
    Part { name: "one element in the optimiser", operator: "combine", deed: r#"{"flip":3}"#, ..PART },
    Part { name: "the witness of a maximum", operator: "row_max", deed: r#"{"flip":1}"#, ..PART },
    Part { name: "no backward pass", operator: "relu_grad", ..PART },
    Part { name: "stale weights", operator: "combine", deed: "stay", ..PART },
    Part { name: "other data", operator: "sample", ..PART },
    Part { name: "another key of draws", operator: "sample", deed: "other_key", ..PART },
    Part { name: "a smaller model", deed: "halve", ..PART },
];

#[tokio::test(flavor = "multi_thread")]
async fn whoever_computes_something_else_is_convicted_of_it() {
    let mut network = Network::start(1).await;
    network.endow(VILLAIN, CAST.len()).await;
    for (index, part) in CAST.iter().enumerate() {
        let before = Purses::of(&network, 1).await;
        network.start_part(VILLAIN, (part.step, part.operator, part.deed)).await;
        JOB.post(&mut network);
        let report = JOB.settled_in(part.name, &mut network, LIMIT).await;
        network.cut_worker(VILLAIN);

        let verdict = report.verdict(&network).await;
        let found = (verdict.worker, verdict.auditor, verdict.fault, verdict.step);
        assert_eq!(found, (worker_address(VILLAIN), address(VALIDATOR), part.fault, part.step), "{}", part.name);
        verdict.assert_signed();
        before.assert_only_stakes_paid(&network, &report).await;
        assert_eq!(network.stake(VILLAIN).await.locked, 0, "{}", part.name);

        let numbers = report.pick(|event| match event {
            Event::Convicted { claimed, recomputed, .. } => Some((claimed.clone(), recomputed.clone())),
            _ => None,
        });
        assert_eq!(numbers.len(), index + 1, "{}: {numbers:?}", part.name);
        assert!(numbers.last().is_some_and(|(claimed, recomputed)| claimed != recomputed), "{}", part.name);
        assert_eq!(report.json["convictions"][0]["fault"], "element", "{}", part.name);
        assert!(report.paid().is_empty(), "{}: nothing is paid for a wrong claim", part.name);
    }
}
