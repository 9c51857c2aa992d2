//! What must hold when everything is over.

use std::collections::BTreeMap;

use alloy::primitives::Bytes;
use alloy::providers::Provider;
use alloy::rpc::types::TransactionRequest;
use alloy::sol_types::SolCall;
use serde_json::Value;
use tensorlink_bindings::SNO;
use tensorlink_node::ports::chain::{Chain, Event, JobState};
use tensorlink_proof::challenge::Told;
use tensorlink_types::{Address, JobId, Lane, U256};

use super::agents::Agents;
use crate::harness::{
    COLLATERAL, FIRST_WORKER, Job, Network, OBSERVER, Report, STAKE, TREASURY, USER, VALIDATOR, address,
    assert_claimed, quiet_run, sno,
};

/// Beyond every unbonding, seconds.
const UNBONDED: u64 = 2_000;

/// `closed`: the user had to end the job.
pub(super) async fn everything_is_right(network: &Network, agents: &mut Agents, closed: bool) {
    let text = std::fs::read(network.path("report.json")).unwrap();
    let report = Report { json: serde_json::from_slice(&text).unwrap(), events: network.events().await };
    nobody_was_convicted(&report);
    challenges_are_lost(&report);
    claims_are_final_and_paid(network, &report, closed).await;
    same_as_a_quiet_run(&report, network);
    agents.stop();
    nothing_is_stuck(network).await;
}

/// Whether every replica has a stage whose claims the others did not wait for.
pub(super) async fn nobody_can_go_on(network: &Network) -> bool {
    let view = network.chain().job(JobId(1)).await.unwrap().unwrap();
    for replica in 0..view.replicas {
        let mut lost = false;
        for stage in 0..view.stages {
            lost |= network.chain().is_too_late(Lane { job: view.id, stage, replica }).await.unwrap();
        }
        if !lost {
            return false;
        }
    }
    true
}

pub(super) fn nobody_was_convicted(report: &Report) {
    assert!(report.slashed().is_empty(), "{:?}", report.slashed());
    let convicted = report.pick(|event| match event {
        Event::Convicted { .. }
        | Event::ClaimsVoided { .. }
        | Event::ReplicasDiffer { .. }
        | Event::AuditorAccused { .. }
        | Event::AuditorPenalised { .. } => Some(format!("{event:?}")),
        Event::Challenge { told: Told::Won { .. }, .. } => Some(format!("{event:?}")),
        _ => None,
    });
    assert!(convicted.is_empty(), "{convicted:#?}");
}

/// Whoever challenged asked no more: the bonds are the workers'.
fn challenges_are_lost(report: &Report) {
    let opened = report.pick(|event| matches!(event, Event::ChallengeOpened { .. }).then_some(()));
    let lost = report.pick(|event| matches!(event, Event::Challenge { told: Told::Lost, .. }).then_some(()));
    assert_eq!(lost.len(), opened.len(), "every challenge ends");
    assert!(!lost.is_empty(), "somebody challenged");
    println!("chaos: challenges, all answered and lost: {}", lost.len());
}

async fn claims_are_final_and_paid(network: &Network, report: &Report, closed: bool) {
    report.assert_accounts();
    let view = network.chain().job(JobId(1)).await.unwrap().unwrap();
    assert_eq!((view.state, U256::from(view.escrow)), (JobState::Settled, U256::ZERO));
    let mut committed: BTreeMap<_, u32> = BTreeMap::new();
    for lane in report.pick(|event| match event {
        Event::ClaimCommitted { claim, .. } => Some(claim.lane()),
        _ => None,
    }) {
        *committed.entry(lane).or_default() += 1;
    }
    let paid = report.paid();
    for (lane, claims) in &committed {
        assert_eq!(network.chain().lane(*lane).await.unwrap().finalized, *claims, "{lane}: what is claimed is final");
        let (worker, _) = network.chain().assignment(*lane).await.unwrap();
        assert_eq!(paid.get(&worker).map(|(claims, _)| claims), Some(claims), "{lane}: what is final is paid");
    }
    println!("chaos: claims of lanes, all final and paid: {:?}", committed.values().collect::<Vec<_>>());
    if closed {
        return;
    }
    // One replica of each stage at least went to the end, and the user has the model.
    assert!(report.number("held_out_rows") >= 100.0, "{}", report.json);
    for stage in 0..view.stages {
        let most = committed.iter().filter(|(lane, _)| lane.stage == stage).map(|(_, claims)| *claims).max();
        assert_eq!(most, Some(view.intervals), "stage {stage} was finished");
    }
}

/// Every claim holds what comes out where nothing fails: the same program from the same state, executed by the
/// reference, here.
fn same_as_a_quiet_run(report: &Report, network: &Network) {
    let quiet = quiet_run(network, &Job::data(), &report.posted()[0], report.keys()[0]);
    let claims = report.claims();
    assert!(!claims.is_empty());
    assert_claimed(&claims, &quiet);
}

/// Everybody takes out what they have, and then the contracts hold nothing, and nothing is gone.
pub(super) async fn nothing_is_stuck(network: &Network) {
    let view = network.chain().job(JobId(1)).await.unwrap().unwrap();
    let lanes = usize::from(view.stages) * usize::from(view.replicas);
    let workers = FIRST_WORKER..FIRST_WORKER + lanes;
    for worker in 0..lanes {
        let stake = network.stake(worker).await;
        assert_eq!((U256::from(stake.bonded), stake.locked), (sno(STAKE), 0), "worker {worker}'s stake is free");
    }
    for account in workers.clone() {
        network.ok(account, &["unstake", STAKE]).await;
    }
    network.ok(VALIDATOR, &["unstake", COLLATERAL, "--role", "validator"]).await;
    let client = network.provider();
    let _: Value = client.client().request("evm_increaseTime", (UNBONDED,)).await.unwrap();
    let _: Value = client.client().request("evm_mine", ()).await.unwrap();
    for account in workers.clone() {
        network.ok(account, &["withdraw"]).await;
    }
    network.ok(VALIDATOR, &["withdraw", "--role", "validator"]).await;
    let token = network.deployment().sno;
    if !network.credit(address(USER), token).await.is_zero() {
        network.ok(USER, &["withdraw"]).await;
    }

    let accounts = [VALIDATOR, USER, TREASURY, OBSERVER].into_iter().chain(workers);
    let mut sum = U256::ZERO;
    for account in accounts {
        sum += network.chain().balance(address(account), token).await.unwrap();
    }
    assert_eq!(sum, supply(network, token).await, "everything is in somebody's hands again");
    assert_eq!(sum, sno("3000000"), "and nothing was burned");
}

async fn supply(network: &Network, token: Address) -> U256 {
    let input: Bytes = SNO::totalSupplyCall {}.abi_encode().into();
    let answer = network.provider().call(TransactionRequest::default().to(token).input(input.into())).await.unwrap();
    SNO::totalSupplyCall::abi_decode_returns(&answer).unwrap()
}
