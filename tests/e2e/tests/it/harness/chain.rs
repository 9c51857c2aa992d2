//! The local chain and the contracts on it, with the parameters of `deploy/local-parameters.toml`.

use std::path::{Path, PathBuf};
use std::process::Command;

use alloy::primitives::utils::parse_ether;
use tensorlink_chain::LocalChain;
use tensorlink_types::{Address, U256};

use super::eventually;
use super::process::Process;

/// Between two blocks, seconds.
const BLOCK_TIME: u64 = 1;

pub(crate) fn sno(amount: &str) -> U256 {
    parse_ether(amount).unwrap()
}

/// Whole SNO of so many wei: the reverse of [`sno`].
pub(crate) fn whole_sno(amount: U256) -> U256 {
    amount / sno("1")
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

/// The chain on a port, for what only a test may ask of it.
pub(super) fn local(port: u16) -> LocalChain {
    LocalChain::at(&format!("http://127.0.0.1:{port}"), BLOCK_TIME).unwrap()
}

/// Gives SNO to accounts.
pub(super) async fn give(port: u16, (sno, from): (Address, Address), to: &[Address], amount: U256) {
    let each: Vec<(Address, U256)> = to.iter().map(|to| (*to, amount)).collect();
    local(port).give((sno, from), &each).await.unwrap();
}
