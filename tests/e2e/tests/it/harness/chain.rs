//! The local chain and the contracts on it, with the parameters of `deploy/local-parameters.toml`.

use std::path::{Path, PathBuf};
use std::process::Command;

use alloy::network::{Ethereum, TransactionBuilder};
use alloy::primitives::aliases::U40;
use alloy::primitives::utils::parse_ether;
use alloy::providers::{Provider, RootProvider};
use alloy::rpc::types::TransactionRequest;
use alloy::sol_types::SolCall;
use serde_json::Value;
use tensorlink_bindings::creation::Parameters;
use tensorlink_bindings::{Creation, SNO};
use tensorlink_chain::deployment::created;
use tensorlink_node::ports::chain::Deployment;
use tensorlink_types::{Address, B256, U256};

use super::eventually;
use super::process::Process;

/// Between two blocks, seconds.
const BLOCK_TIME: u64 = 1;

/// Blocks that take up all transactions which a test sends at once, at most.
const BLOCKS: u64 = 32;

pub(crate) fn sno(amount: &str) -> U256 {
    parse_ether(amount).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Starts anvil; its state is in `folder/chain.json` from one start to the next. Port 0 takes any that is free.
pub(super) async fn start_anvil(folder: &Path, port: u16) -> (Process, u16) {
    let path = root().join("node_modules/.bin/anvil");
    assert!(path.exists(), "there is no anvil: run script/setup");
    let mut command = Command::new(path);
    command.args(["--block-time", &BLOCK_TIME.to_string(), "--hardfork", "prague"]);
    command.args(["--port", &port.to_string(), "--state"]).arg(folder.join("chain.json"));
    let process = Process::spawn("anvil", command, folder);
    let port = eventually("anvil listens", super::LIMIT, async || {
        let log = process.log();
        let (_, rest) = log.rsplit_once("Listening on 127.0.0.1:")?;
        rest.lines().next()?.trim().parse().ok()
    });
    let port = port.await;
    (process, port)
}

/// Of `deploy/local-parameters.toml`.
pub(super) fn parameters() -> Parameters {
    let text = std::fs::read_to_string(root().join("deploy/local-parameters.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let number = |key: &str| u64::try_from(table[key].as_integer().unwrap()).unwrap();
    Parameters {
        unbondingDelay: U40::from(number("unbonding_delay_seconds")),
        validatorCollateral: sno(&number("validator_collateral_sno").to_string()).to(),
        disputeClock: number("dispute_clock_seconds").try_into().unwrap(),
        moveGrace: number("move_grace_seconds").try_into().unwrap(),
        moveBlocks: number("move_blocks").try_into().unwrap(),
        disputeBond: sno(&number("dispute_bond_sno").to_string()).to(),
        minChallengeWindow: number("min_challenge_window_seconds").try_into().unwrap(),
        maxChallengeWindow: number("max_challenge_window_seconds").try_into().unwrap(),
        sealWindow: number("seal_window_seconds").try_into().unwrap(),
        bountyBps: number("bounty_bps").try_into().unwrap(),
        harmBps: number("harm_bps").try_into().unwrap(),
        minStakeIntervals: number("min_stake_intervals").try_into().unwrap(),
        auditsPerClaimBps: number("audits_per_claim_bps").try_into().unwrap(),
        auditFeeBps: number("audit_fee_bps").try_into().unwrap(),
        auditPenaltyBps: number("audit_penalty_bps").try_into().unwrap(),
        beaconPeriod: number("beacon_period_seconds").try_into().unwrap(),
    }
}

/// Creates the contracts from an account that has sent nothing yet.
pub(super) async fn deploy(
    provider: &RootProvider<Ethereum>,
    from: Address,
    genesis: [Address; 3],
    parameters: &Parameters,
) -> Deployment {
    let creation = Creation::new(from, 0, parameters, &genesis);
    let create =
        |(nonce, code): (usize, _)| TransactionRequest::default().with_deploy_code(code).with_nonce(nonce as u64);
    send_all(provider, from, creation.code.iter().cloned().enumerate().map(create)).await;
    let chain_id = provider.get_chain_id().await.unwrap();
    created(&creation, chain_id)
}

/// Gives SNO to accounts.
pub(super) async fn give(
    provider: &RootProvider<Ethereum>,
    (sno, from): (Address, Address),
    to: &[Address],
    amount: U256,
) {
    let transfer = |to: &Address| {
        let input = SNO::transferCall { to: *to, value: amount }.abi_encode();
        TransactionRequest::default().with_to(sno).with_input(input)
    };
    send_all(provider, from, to.iter().map(transfer)).await;
}

/// Sends from an account that anvil has the key of, and has all of it mined.
///
/// No block is made meanwhile: what follows a transaction that anvil is just mining can wait in its pool for ever.
async fn send_all(
    provider: &RootProvider<Ethereum>,
    from: Address,
    requests: impl IntoIterator<Item = TransactionRequest>,
) {
    set_block_time(provider, 0).await;
    let mut sent: Vec<B256> = Vec::new();
    for request in requests {
        let request = request.with_from(from).with_gas_limit(10_000_000);
        sent.push(*provider.send_transaction(request).await.unwrap().tx_hash());
    }
    for transaction in sent {
        let mut blocks = 0;
        let receipt = loop {
            if let Some(receipt) = provider.get_transaction_receipt(transaction).await.unwrap() {
                break receipt;
            }
            blocks += 1;
            assert!(blocks <= BLOCKS, "transaction {transaction} is not mined");
            let _mined: Value = provider.client().request("evm_mine", ()).await.unwrap();
        };
        assert!(receipt.status(), "transaction {transaction} reverted");
    }
    set_block_time(provider, BLOCK_TIME).await;
}

/// Seconds between two blocks; at 0 none is made.
async fn set_block_time(provider: &RootProvider<Ethereum>, seconds: u64) {
    let () = provider.client().request("evm_setIntervalMining", (seconds,)).await.unwrap();
}
