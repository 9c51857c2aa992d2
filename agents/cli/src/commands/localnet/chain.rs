//! The chain of the local network: anvil, the contracts on it, and money.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tensorlink_chain::{AlloyChain, LocalChain, read_deployment, write_deployment};
use tensorlink_node::Identity;
use tensorlink_node::ports::chain::{Deployment, Role};
use tensorlink_node::ports::{Call, Chain as _};
use tensorlink_types::{Address, U256};
use tokio_util::sync::CancellationToken;

use super::folder::{Folder, make};
use super::logs;
use super::process::{self, Process};
use super::programs;
use super::state::{CHAIN, Chain};

/// Anvil answers within.
const START: Duration = Duration::from_secs(30);
/// The contracts are created, or money is given, within.
const DEPLOY: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(50);
/// Seconds between two copies of the chain on disk: what a power cut can cost. Anvil writes one more when it ends.
const SAVE: &str = "60";

/// Starts anvil.
pub(super) fn start(folder: &Folder, chain: &Chain) -> Result<Process> {
    make(&folder.chain())?;
    let mut command = Command::new(programs::anvil()?);
    // Its log would hold the keys of its accounts.
    command.args(["--quiet", "--host", "127.0.0.1", "--hardfork", "prague", "--state-interval", SAVE]);
    command.args(["--port", &chain.port.to_string(), "--block-time", &chain.block_time.to_string()]);
    command.arg("--state").arg(folder.chain().join("state.json"));
    command.arg("--cache-path").arg(folder.chain().join("cache"));
    process::spawn(command, &folder.log(CHAIN))
}

/// Waits until it answers.
pub(super) async fn ready(folder: &Folder, chain: &Chain) -> Result<LocalChain> {
    let local = LocalChain::at(&chain.http(), chain.block_time)?;
    let started = Instant::now();
    loop {
        if let Ok(Ok(_)) = tokio::time::timeout(START, local.height()).await {
            return Ok(local);
        }
        let runs = chain.process.as_ref().is_some_and(Process::runs);
        ensure!(runs && started.elapsed() < START, "anvil does not answer; {}", logs::end(folder, CHAIN));
        tokio::time::sleep(LOOK).await;
    }
}

/// The account that gives: the first whose key anvil holds. Whoever can reach the chain can spend what it has.
pub(super) async fn faucet(local: &LocalChain) -> Result<Address> {
    local.accounts().await?.first().copied().context("anvil holds no account")
}

/// Creates the contracts, and writes down where they are. The validator gets the SNO of its collateral; the faucet
/// the rest.
pub(super) async fn deploy(folder: &Folder, local: &LocalChain, validator: Address) -> Result<Deployment> {
    let creating = async {
        let faucet = faucet(local).await?;
        let parameters = LocalChain::parameters()?;
        Ok::<_, anyhow::Error>(local.deploy(faucet, &[faucet, faucet, validator], &parameters).await?)
    };
    let deployment =
        tokio::time::timeout(DEPLOY, creating).await.context("the contracts are not created in time")??;
    let path = folder.deployment();
    write_deployment(&path, &deployment).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(deployment)
}

/// The contracts of a network that there is.
pub(super) fn deployment(folder: &Folder) -> Result<Deployment> {
    Ok(read_deployment(&folder.deployment())?)
}

/// Gives many SNO and ETH at once, before others use the chain.
pub(super) async fn endow(local: &LocalChain, sno: Address, gifts: &[(Address, U256)], eth: U256) -> Result<()> {
    let giving = async {
        let faucet = faucet(local).await?;
        for (to, _) in gifts {
            local.add_eth(*to, eth).await?;
        }
        local.give((sno, faucet), gifts).await?;
        Ok::<_, anyhow::Error>(())
    };
    tokio::time::timeout(DEPLOY, giving).await.context("the accounts are not funded in time")?
}

/// Gives one account SNO and ETH, while others use the chain.
pub(super) async fn give(local: &LocalChain, sno: Address, to: Address, (amount, eth): (U256, U256)) -> Result<()> {
    let giving = async {
        let faucet = faucet(local).await?;
        if !eth.is_zero() {
            local.add_eth(to, eth).await?;
        }
        if !amount.is_zero() {
            local.transfer((sno, faucet), to, amount).await?;
        }
        Ok::<_, anyhow::Error>(())
    };
    let given = tokio::time::timeout(DEPLOY, giving).await.context("the chain does not mine the transfer in time")?;
    given.context("the faucet cannot give so much")
}

/// Bonds SNO of a new account.
pub(super) async fn stake(
    chain: &Chain,
    deployment: &Deployment,
    (identity, role, amount): (Identity, Role, U256),
    shutdown: &CancellationToken,
) -> Result<()> {
    let account = identity.address();
    let config = tensorlink_chain::Config {
        rpc_urls: vec![chain.http()],
        deployment: deployment.clone(),
        confirmations: 0,
        limits: Default::default(),
        identity,
        shutdown: shutdown.clone(),
    };
    let bonding = async { AlloyChain::connect(config).await?.send(Call::Stake { role, amount }).await };
    let bonded = tokio::time::timeout(DEPLOY.saturating_mul(3), bonding).await;
    bonded.with_context(|| format!("the stake of {account} is not mined in time"))??;
    Ok(())
}
