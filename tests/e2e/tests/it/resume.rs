//! A training that ended early goes on in another job, on other workers and in other stages: what comes out is what
//! would have.

use tensorlink_node::Journal;
use tensorlink_node::ports::Chain;
use tensorlink_types::abi::Claim;
use tensorlink_types::{JobId, Lane};
use tensorlink_user::JobNote;

use crate::harness::{Job, LIMIT, Network, Subject, USER, assert_claimed, quiet_run, recut_run};

/// Long enough to be in its middle when its first claims are on chain.
const JOB: Job = Job {
    stages: 2,
    replicas: 1,
    steps: 300,
    steps_per_interval: 30,
    token: "sno",
    subject: Subject::KingJames,
    challenge_window: 5,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_training_is_the_same_on_other_workers() {
    let mut network = Network::start(4).await;
    network.start_workers(0..2).await;
    JOB.post(&mut network);
    network.await_claim_of_each(&JOB, LIMIT).await;
    network.ok(USER, &["job", "cancel", "1"]).await;
    let report = JOB.settled(&mut network, LIMIT).await;
    assert!(report.json["held_out_percent"].is_null(), "it did not finish: {}", report.json);
    let finished = final_everywhere(&network).await;
    assert!((1..JOB.intervals()).contains(&finished), "it ended in its middle, after {finished} intervals");

    // One of those who had the states is gone: the other one kept its last for it.
    network.cut_worker(0);
    network.start_workers([2, 3]).await;
    let other = ["job", "resume", "1", "--stages", "3", "--deposit", Job::DEPOSIT];
    // As if an earlier version had posted it.
    let journal = Journal::open(network.path(&format!("data-{USER}/journal"))).unwrap();
    let note: JobNote = journal.read("job-1").unwrap().unwrap();
    journal.write("job-1", &JobNote { layouts: None, ..note.clone() }).unwrap();
    let refused = network.run(USER, &other).await;
    assert!(!refused.ok && refused.stderr.contains("leave out --stages, or give 2"), "{}", refused.stderr);
    journal.write("job-1", &note).unwrap();
    let quote = network.ok(USER, &["job", "resume", "1", "--deposit", Job::DEPOSIT, "--dry-run", "--json"]).await;
    assert_eq!(quote.json()[0]["stages"], 2);
    let report = network.path("report.json");
    let mut command = network.command(USER, &other);
    command.args(["--challenge-window", "5", "--watch", "--report"]).arg(report);
    network.spawn("user", command);
    let report = JOB.settled(&mut network, LIMIT).await;
    assert!(report.number("held_out_percent") > 22.0, "{}", report.json);
    assert!(report.slashed().is_empty());

    let (terms, keys) = (report.posted(), report.keys());
    assert_eq!((terms[1].continues, terms[1].firstStep), (1, finished * JOB.steps_per_interval));
    assert_eq!(keys[0], keys[1]);
    let quiet = quiet_run(&network, &network.path("text.txt"), &terms[0], keys[0]);
    let (first, rest): (Vec<Claim>, Vec<Claim>) =
        report.claims().into_iter().partition(|claim| claim.lane().job == JobId(1));
    let last = JOB.intervals() - finished - 1;
    assert!(rest.iter().any(|claim| claim.interval == last), "the rest is claimed to its end");
    assert_claimed(&first, &quiet);
    let recut = recut_run(&network, &network.path("text.txt"), (&terms[0], keys[0]), &terms[1]);
    assert_eq!(recut[0].len(), 3);
    assert_claimed(&rest, &recut[finished as usize..]);
}

/// Intervals of the first job that are final in both stages.
async fn final_everywhere(network: &Network) -> u32 {
    let mut finished = u32::MAX;
    for stage in 0..JOB.stages {
        let lane = network.chain().lane(Lane { job: JobId(1), stage, replica: 0 }).await.unwrap();
        finished = finished.min(lane.finalized);
    }
    finished
}
