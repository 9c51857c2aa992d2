//! A training that loses a worker goes on by itself, in another job, without that worker: what comes out is what would
//! have.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tensorlink_node::ports::chain::Event;
use tensorlink_types::abi::Claim;
use tensorlink_types::{B256, JobId, Lane, U256};

use crate::harness::{
    Job, LIMIT, Network, Report, Subject, USER, address, assert_claimed, quiet_run, run, unshared_run, whole_sno,
    worker_address,
};

/// Long enough to be in its middle when its first claims are on chain.
const JOB: Job = Job {
    stages: 2,
    replicas: 1,
    steps: 600,
    steps_per_interval: 30,
    token: "sno",
    subject: Subject::KingJames,
    challenge_window: 20,
};
/// More than a network has.
const ACCOUNTS: usize = 16;
/// Seconds of a worker's silence that its user bears.
const BORNE: &str = "10";

#[tokio::test(flavor = "multi_thread")]
async fn a_training_goes_on_without_a_worker_that_is_gone() {
    let mut network = midway().await;
    let gone = hired(&network, JobId(1)).await;
    await_mirrored(&network, JOB.stages - 1).await;
    network.cut_worker(gone);
    let claimed = claimed_by(&network, gone).await;
    let cut = Instant::now();
    network.said("user", "goes on after", LIMIT).await;
    eprintln!("another job runs {:.1} s after a worker was killed", cut.elapsed().as_secs_f64());
    let report = JOB.settled(&mut network, LIMIT).await;
    assert_went_on(&JOB, &report, &undisturbed(&network, &report));
    let taken = report.posted()[1].firstStep / JOB.steps_per_interval;
    eprintln!("{taken} of {claimed} intervals that it had claimed are taken over");
    assert!((2..=claimed).contains(&taken), "{taken} of {claimed} intervals that it had claimed");
    assert_eq!(report.json["before"][0]["why"]["silent"], 10, "{}", report.json);
    assert_eq!(report.json["before"][0]["workers"], json!([worker_address(gone)]));
    assert!(report.slashed().is_empty(), "who is gone loses its place and nothing else");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_a_training_again_goes_on_with_it_as_well() {
    let mut network = midway().await;
    network.cut("user");
    network.cut_worker(hired(&network, JobId(1)).await);
    // Once more while it looks for somebody else.
    Job::watch(&mut network);
    network.said("user", "it goes on in another job", LIMIT).await;
    network.cut("user");
    Job::watch(&mut network);
    let report = JOB.settled(&mut network, LIMIT).await;
    assert_went_on(&JOB, &report, &undisturbed(&network, &report));
    assert!(report.slashed().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_goes_on_without_a_worker_that_is_convicted() {
    let mut network = Network::start(3).await;
    network.start_workers([0, 2]).await;
    network.start_villain(1, 30).await;
    // Few claims, and time to audit them, on a busy machine too.
    let job = Job { steps: 60, steps_per_interval: 20, subject: Subject::Digits, challenge_window: 40, ..JOB };
    job.post_to_go_on(&mut network, BORNE);
    let report = job.settled(&mut network, LIMIT).await;
    assert_eq!(report.json["before"][0]["why"], "convicted", "{}", report.json);
    assert_eq!(report.json["before"][0]["convictions"][0]["worker"], json!(worker_address(1)));
    assert_eq!(report.json["before"][0]["workers"], json!([worker_address(1)]));
    assert!(report.json["convictions"].as_array().unwrap().is_empty(), "in the other job everybody is honest");
    assert_went_on(&job, &report, &quiet_run(&network, &Job::data(), &report.posted()[0], report.keys()[0]));
}

/// Who has no more than the deposit goes on once that is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_training_waits_for_its_escrow_where_the_account_has_no_other() {
    let mut network = midway().await;
    // All but half of what was put up.
    let left = whole_sno(network.owned(address(USER)).await - Job::deposit() / U256::from(2));
    network.ok(USER, &["stake", &left.to_string()]).await;
    network.cut_worker(hired(&network, JobId(1)).await);
    network.said("user", "waiting until the escrow of job 1 is back", LIMIT).await;
    let report = JOB.settled(&mut network, LIMIT).await;
    assert_went_on(&JOB, &report, &undisturbed(&network, &report));
}

/// Where one worker is left of two, it has the whole model from then on.
#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_take_a_place_the_training_goes_on_in_fewer_stages() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    let mut command = JOB.posting_to_go_on(&network, BORNE);
    command.args(["--patience", "10"]);
    network.spawn("user", command);
    network.await_claim_of_each(&JOB, LIMIT).await;
    // The first states are with their keepers a moment later.
    tokio::time::sleep(Duration::from_secs(3)).await;
    network.cut_worker(1);
    network.said("user", "it goes on in fewer stages, 1", LIMIT).await;
    let report = JOB.settled(&mut network, LIMIT).await;
    assert!(report.number("held_out_percent") > 22.0, "{}", report.json);
    let (terms, keys) = (report.posted(), report.keys());
    assert_eq!((terms[0].stages, terms[1].stages, terms[1].continues), (2, 1, 1));
    let taken = terms[1].firstStep / JOB.steps_per_interval;
    assert!(taken > 0 && taken + terms[1].intervals == JOB.intervals(), "{taken} intervals are kept");
    let whole = unshared_run(&network, &network.path("text.txt"), (&terms[0], keys[0]), 1);
    let rest = report.claims().into_iter().filter(|claim| claim.lane().job == JobId(2)).collect::<Vec<_>>();
    assert!(rest.iter().any(|claim| claim.interval == terms[1].intervals - 1), "the rest is claimed to its end");
    assert_claimed(&rest, &whole[taken as usize..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_is_left_the_job_ends_and_its_escrow_comes_back() {
    let mut network = Network::start(2).await;
    network.start_workers(0..2).await;
    let mut command = JOB.posting_to_go_on(&network, BORNE);
    command.args(["--patience", "10"]);
    let posted = tokio::spawn(run(command, 3 * LIMIT));
    network.await_claim_of_each(&JOB, LIMIT).await;
    (0..2).for_each(|number| network.cut_worker(number));
    let posted = posted.await.unwrap();
    assert!(!posted.ok && posted.stderr.contains("`tensorlink job resume 1` tries again"), "{}", posted.stderr);
    let refunds = network.events().await.into_iter().filter(|at| matches!(at.event, Event::JobSettled { .. }));
    assert_eq!(refunds.count(), 1, "the job is settled all the same");
}

/// A training of two of three workers, the first states of which are with their keepers.
async fn midway() -> Network {
    let mut network = Network::start(3).await;
    network.start_workers(0..3).await;
    JOB.post_to_go_on(&mut network, BORNE);
    network.await_claim_of_each(&JOB, LIMIT).await;
    // They are a moment later.
    tokio::time::sleep(Duration::from_secs(3)).await;
    network
}

/// A worker that holds a lane of a job.
async fn hired(network: &Network, of: JobId) -> usize {
    let worker = network.events().await.into_iter().find_map(|at| match at.event {
        Event::JobAccepted { job, offers } if job == of => offers.last().map(|offer| offer.worker),
        _ => None,
    });
    (0..3).find(|number| Some(worker_address(*number)) == worker).expect("a worker of the network")
}

/// Until a worker has a state of this stage at hand that is not the first, though it has attested none.
async fn await_mirrored(network: &Network, stage: u16) {
    let is_mirrored = |holding: &Value| {
        let claim = &holding["claim"];
        holding["mirrored"] == true && claim["stage"] == stage && claim["interval"].as_u64() >= Some(1)
    };
    let is_here = |account: usize| {
        let text = std::fs::read_to_string(network.path(&format!("data-{account}/journal/holdings.json")));
        let holdings = text.ok().and_then(|text| serde_json::from_str::<Value>(&text).ok()).unwrap_or_default();
        holdings["record"].as_array().is_some_and(|all| all.iter().any(is_mirrored))
    };
    let until = Instant::now() + LIMIT;
    while Instant::now() < until {
        if (0..ACCOUNTS).any(is_here) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no state is mirrored");
}

/// Intervals of the first job that a worker has claimed.
async fn claimed_by(network: &Network, worker: usize) -> u32 {
    let lane = network.events().await.into_iter().find_map(|at| match at.event {
        Event::JobAccepted { job: JobId(1), offers } => {
            offers.iter().position(|offer| offer.worker == worker_address(worker))
        }
        _ => None,
    });
    let stage = u16::try_from(lane.expect("it is hired")).unwrap();
    let claims = network.events().await.into_iter().filter(|at| match &at.event {
        Event::ClaimCommitted { claim, .. } => claim.lane() == Lane { job: JobId(1), stage, replica: 0 },
        _ => false,
    });
    claims.count() as u32
}

/// States of the training that nothing disturbs.
fn undisturbed(network: &Network, report: &Report) -> Vec<Vec<B256>> {
    quiet_run(network, &network.path("text.txt"), &report.posted()[0], report.keys()[0])
}

/// The training was done by two jobs together, in the bits of one that nothing disturbs.
fn assert_went_on(job: &Job, report: &Report, quiet: &[Vec<B256>]) {
    assert!(report.number("held_out_percent") > 22.0, "{}", report.json);
    let (terms, keys) = (report.posted(), report.keys());
    assert_eq!((terms.len(), terms[1].continues), (2, 1));
    assert_eq!(keys[0], keys[1]);
    let taken = terms[1].firstStep / job.steps_per_interval;
    assert!(taken < job.intervals(), "it went on in its middle, after {taken} intervals");
    assert_eq!(report.json["before"][0]["intervals"], taken);
    assert!(terms[1].intervals + taken == job.intervals());
    let (first, rest): (Vec<Claim>, Vec<Claim>) =
        report.claims().into_iter().partition(|claim| claim.lane().job == JobId(1));
    let void = report.pick(|event| match event {
        Event::ClaimsVoided { lane, from } => Some((*lane, *from)),
        _ => None,
    });
    let is_void = |claim: &Claim| void.iter().any(|(lane, from)| *lane == claim.lane() && *from <= claim.interval);
    let first: Vec<Claim> = first.into_iter().filter(|claim| claim.interval < taken && !is_void(claim)).collect();
    assert!(rest.iter().any(|claim| claim.interval == terms[1].intervals - 1), "the rest is claimed to its end");
    assert_claimed(&first, quiet);
    assert_claimed(&rest, &quiet[taken as usize..]);
}
