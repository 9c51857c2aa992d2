//! What commands print for programs is what the book says: those that other tests do not run. That it is so is checked
//! wherever a test reads what a command printed (`harness::documented`).

use alloy::primitives::aliases::U40;
use serde_json::json;

use crate::harness::{FIRST_WORKER, Job, LIMIT, Network, OBSERVER, USER, VALIDATOR, run, sno, worker_address};

/// The account of worker 0.
const WORKER: usize = FIRST_WORKER;

async fn read(network: &Network, account: usize, arguments: &[&str]) -> Vec<serde_json::Value> {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    network.ok(account, &arguments).await.json()
}

/// Nobody waits longer for what unbonds already, unless that is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn stake_is_told_as_the_book_says_and_a_second_request_is_warned_of() {
    let network = Network::staked(1, |parameters| parameters.unbondingDelay = U40::from(3_600u64)).await;
    let balance = read(&network, WORKER, &["balance"]).await.remove(0);
    assert_eq!(balance["worker"]["bonded"], sno("2000").to_string());
    let first = read(&network, WORKER, &["unstake", "5"]).await.remove(0);
    assert_eq!(first["unbonding"], sno("5").to_string());
    let release = first["release_at"].as_u64().unwrap();
    let second = network.run(WORKER, &["unstake", "7"]).await;
    assert!(!second.ok, "{}", second.stdout);
    for part in ["5 SNO unbond already, until 20", "UTC", "all 12 SNO unbond until 20", "--restart"] {
        assert!(second.stderr.contains(part), "`{part}` is not in {}", second.stderr);
    }
    assert_eq!(network.stake(0).await.unbonding, sno("5").to::<u128>(), "nothing was sent");
    let restarted = read(&network, WORKER, &["unstake", "7", "--restart"]).await.remove(0);
    assert_eq!(restarted["unbonding"], sno("12").to_string());
    assert!(restarted["release_at"].as_u64().unwrap() > release);
    let early = network.run(WORKER, &["withdraw"]).await;
    assert!(!early.ok && early.stderr.contains("12 SNO unbond at 20"), "{}", early.stderr);
    let told = network.ok(WORKER, &["unstake", "1", "--restart"]).await.stdout;
    assert!(told.contains("13 SNO unbond, to be withdrawn from 20") && told.contains(" UTC, in "), "{told}");
    read(&network, WORKER, &["stake", "1"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_and_disputes_are_told_as_the_book_says() {
    let mut network = Network::start(2).await;
    network.start_villain(0, 30).await;
    network.start_workers([1]).await;
    let job = Job { stages: 1, steps: 60, challenge_window: 20, ..Job::default() };
    job.post(&mut network);
    let report = job.settled(&mut network, LIMIT).await;
    assert_eq!(report.json["convictions"][0]["worker"], worker_address(0).to_string().to_lowercase());
    for (account, arguments) in [
        (OBSERVER, &["job", "status", "1"][..]),
        (OBSERVER, &["job", "list"]),
        (OBSERVER, &["dispute", "list"]),
        (OBSERVER, &["dispute", "show", "--job", "1", "--stage", "0", "--interval", "1"]),
        (OBSERVER, &["dispute", "explain", "--job", "1", "--stage", "0", "--interval", "1"]),
        (USER, &["key", "address"]),
        (VALIDATOR, &["balance"]),
        (OBSERVER, &["bench", "profile"]),
    ] {
        let values = read(&network, account, arguments).await;
        assert!(!values.is_empty(), "{arguments:?} printed nothing");
    }
    // The chain has no tiers: who has hired wrote them down.
    let status = read(&network, USER, &["job", "status", "1"]).await;
    let (tier, worker) = (&status[0]["lanes"][0]["tier"], status[0]["lanes"][0]["worker"].as_str().unwrap());
    assert!(["A", "B", "C"].iter().any(|known| tier == known), "{status:?}");
    assert_eq!(report.json["tiers"], json!({ (worker): tier }));
    let status = read(&network, OBSERVER, &["job", "status", "1"]).await;
    assert!(status[0]["lanes"][0]["tier"].is_null(), "{status:?}");
    let shown = read(&network, OBSERVER, &["dispute", "list"]).await;
    assert!(shown.iter().any(|row| row["what"] == json!("conviction")), "{shown:?}");
    let quote = {
        let mut command = job.posting(&network);
        command.args(["--dry-run", "--json"]);
        run(command, LIMIT).await.json().remove(0)
    };
    assert_eq!(quote["deposit"], Job::deposit().to_string());
}
