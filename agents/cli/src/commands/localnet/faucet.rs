//! `tensorlink localnet faucet`.

use anyhow::{Result, ensure};
use serde::Serialize;
use tensorlink_types::{Address, address};
use tokio_util::sync::CancellationToken;

use super::folder::Folder;
use super::process::Process;
use super::state::State;
use super::{FaucetArgs, chain, status};
use crate::amount::{Wei, parse_amount};
use crate::config::Common;
use crate::config::Config;
use crate::{keys, output};

#[derive(Serialize)]
struct Given {
    account: Address,
    /// What it has now, wei.
    sno: Wei,
    eth: Wei,
}

/// Gives SNO and ETH.
pub(super) async fn run(common: &Common, args: &FaucetArgs, shutdown: &CancellationToken) -> Result<()> {
    let (sno, eth) = (parse_amount(&args.sno)?, parse_amount(&args.eth)?);
    ensure!(!sno.is_zero() || !eth.is_zero(), "nothing is asked for: name --sno or --eth");
    let folder = Folder::find()?;
    let state = State::must(&folder)?;
    ensure!(
        state.chain.process.as_ref().is_some_and(Process::runs),
        "the chain does not run: `tensorlink localnet up` starts it"
    );
    let account: Address = match &args.address {
        Some(text) => address::parse(text)?,
        None => keys::load(&Config::load(common)?)?.address(),
    };
    let local = chain::ready(&folder, &state.chain).await?;
    let reader = status::reader(&folder, &state, shutdown).await?;
    let token = reader.deployment().sno;
    let left = reader.balance(chain::faucet(&local).await?, token).await?;
    ensure!(sno <= left, "the faucet has {} SNO left, all that this network ever had but what it gave", Wei(left));
    chain::give(&local, token, account, (sno, eth)).await?;
    let given = Given {
        account,
        sno: Wei(reader.balance(account, token).await?),
        eth: Wei(reader.balance(account, Address::ZERO).await?),
    };
    output::print(common.json, &given, || format!("{} has {} SNO and {} ETH now", given.account, given.sno, given.eth))
}
