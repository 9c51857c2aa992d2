//! Jobs in which everybody does what they promised.

use std::collections::BTreeMap;

use tensorlink_node::ports::Chain;
use tensorlink_types::{Address, U256};

use crate::harness::{COLLATERAL, Job, LIMIT, Network, USER, VALIDATOR, address, eventually, run, sno, worker_address};

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_paid_per_claim_and_the_model_learned() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    let job = Job::default();
    job.post(&mut network);
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);
    assert!(report.refund() > U256::ZERO && report.refund() < Job::deposit());
    for worker in 0..2 {
        let stake = network.stake(worker).await;
        assert_eq!((stake.locked, U256::from(stake.bonded)), (0, sno("2000")), "worker {worker}'s stake is free again");
    }
    // The user has collected the refund: what is gone is what was paid.
    let token = network.deployment().sno;
    let balance = network.chain().balance(address(USER), token).await.unwrap();
    assert_eq!(balance, sno("1000000") - Job::deposit() + report.refund());
    assert_eq!(network.stake_of_validator().await, sno(COLLATERAL), "{VALIDATOR}: an audit costs no collateral");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_says_what_the_job_then_costs_and_posts_nothing() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    let job = Job::default();
    let mut asking = job.posting(&network);
    asking.args(["--dry-run", "--json"]);
    let told = run(asking, LIMIT).await.json().remove(0);
    assert_eq!(network.chain().job_count().await.unwrap(), 0, "nothing is posted");
    let number = |name: &str| told[name].as_u64().unwrap_or_else(|| panic!("no number {name} in {told}"));
    assert_eq!(["stages", "replicas", "steps", "intervals"].map(number), [2, 1, 60, 3]);
    assert!(told["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{told}");
    let wei = |name: &str| U256::from_str_radix(told[name].as_str().unwrap(), 10).unwrap();
    assert_eq!(wei("deposit"), Job::deposit());
    assert!(wei("audit_budget") > U256::ZERO && wei("audit_budget") + wei("estimate") <= wei("deposit"), "{told}");

    job.post(&mut network);
    let report = job.settled(&mut network, LIMIT).await;
    let paid: U256 = report.paid().values().map(|(_, amount)| *amount).sum();
    // A worker rounds its price of an interval up; the quote, what a lane costs, down.
    assert!(
        paid >= wei("estimate") && paid < wei("estimate") + U256::from(job.claims() + job.lanes()),
        "{paid}: {told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_placed_by_what_workers_say_they_compute() {
    let mut network = Network::start(3).await;
    network.start_workers(0..3).await;
    let job = Job { steps: 40, ..Job::default() };
    // Over loopback all are reached by more than this.
    let by_speed = ["--objective", "throughput", "--min-bandwidth", "1"];
    let mut asking = job.posting(&network);
    asking.args(by_speed).arg("--dry-run");
    let drawn = run(asking, LIMIT).await.stdout;
    let ring: Vec<&str> = drawn.lines().filter(|line| line.contains(" layers ")).collect();
    assert_eq!(ring.len(), usize::from(job.stages), "stages of the ring: {drawn}");
    assert!(drawn.contains(", the bottleneck") && drawn.contains("runner-up, without "), "{drawn}");
    let mut refused = job.posting(&network);
    refused.args(["--tier", "A", "--patience", "1"]);
    let refused = run(refused, LIMIT).await;
    assert!(!refused.ok && refused.stderr.contains("of tier A or better"), "{}", refused.stderr);
    let mut refused = job.posting(&network);
    refused.args(["--objective", "throughput", "--min-bandwidth", "4000000", "--patience", "1"]);
    let refused = run(refused, LIMIT).await;
    assert!(!refused.ok && refused.stderr.contains("bandwidth"), "{}", refused.stderr);
    let mut refused = job.posting(&network);
    refused.args(["--objective", "price", "--min-bandwidth", "1"]);
    let refused = run(refused, LIMIT).await;
    assert!(!refused.ok && refused.stderr.contains("give --objective latency or throughput"), "{}", refused.stderr);
    assert_eq!(network.chain().job_count().await.unwrap(), 0, "nothing was posted");

    job.post_with(&mut network, &by_speed);
    job.settled(&mut network, LIMIT).await.assert_finished(&job);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_claim_the_same_and_are_paid_in_ether() {
    let mut network = Network::start(4).await;
    network.start_workers(0..4).await;
    let job = Job { replicas: 2, steps: 40, token: "eth", ..Job::default() };
    job.post(&mut network);
    let report = job.settled(&mut network, LIMIT).await;
    report.assert_finished(&job);

    let mut states = BTreeMap::new();
    for claim in report.claims() {
        let seen: &mut Vec<_> = states.entry((claim.stage, claim.interval)).or_default();
        seen.push((claim.parentState, claim.newState));
    }
    for (place, seen) in states {
        assert_eq!(seen.len(), 2, "{place:?}");
        assert_eq!(seen[0], seen[1], "replicas at {place:?} computed the same");
    }
    for (worker, (_, amount)) in report.paid() {
        let collects = async || (network.collected(worker, Address::ZERO).await == amount).then_some(());
        eventually(&format!("{worker} collects its ether"), LIMIT, collects).await;
    }
    assert!(report.paid().contains_key(&worker_address(3)));
}
