//! `tensorlink stake|unstake|withdraw|balance`.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tensorlink_node::ports::Call;
use tensorlink_node::ports::chain::{Role, StakeView};
use tensorlink_types::{Address, B256, U256, address};
use tokio_util::sync::CancellationToken;

use crate::amount::{Wei, parse_amount};
use crate::config::Config;
use crate::live::say;
use crate::{node, output, when};

/// Which balance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum RoleArg {
    /// A worker's stake.
    #[default]
    Worker,
    /// A validator's collateral.
    Validator,
}

#[derive(Args, Debug)]
pub struct StakeArgs {
    /// SNO.
    pub amount: String,
    /// Which balance.
    #[arg(long, value_enum, default_value_t)]
    pub role: RoleArg,
}

#[derive(Args, Debug)]
pub struct UnstakeArgs {
    #[command(flatten)]
    pub stake: StakeArgs,
    /// Also if some unbonds already: its time then starts again, together with this.
    #[arg(long)]
    pub restart: bool,
}

#[derive(Args, Debug)]
pub struct WithdrawArgs {
    /// Which stake balance.
    #[arg(long, value_enum, default_value_t)]
    pub role: RoleArg,
}

#[derive(Args, Debug)]
pub struct BalanceArgs {
    /// The account [default: the node's own].
    pub account: Option<String>,
}

#[derive(Serialize)]
struct Done {
    transaction: B256,
    gas: u64,
}

fn role(arg: RoleArg) -> Role {
    match arg {
        RoleArg::Worker => Role::Worker,
        RoleArg::Validator => Role::Validator,
    }
}

/// Bonds SNO.
pub async fn stake(config: &Config, args: &StakeArgs, shutdown: &CancellationToken) -> Result<()> {
    let amount = parse_amount(&args.amount)?;
    send(config, shutdown, Call::Stake { role: role(args.role), amount }, "bonded").await
}

/// What unbonds once more of it was asked for.
#[derive(Serialize)]
struct Unbonding {
    transaction: B256,
    gas: u64,
    /// All that unbonds now, wei of SNO.
    unbonding: Wei,
    /// From when on it can be withdrawn, seconds.
    release_at: u64,
}

/// Starts unbonding SNO, and says until when. What unbonds already starts again with it, so that this is asked for.
pub async fn unstake(config: &Config, args: &UnstakeArgs, shutdown: &CancellationToken) -> Result<()> {
    let (amount, role) = (parse_amount(&args.stake.amount)?, role(args.stake.role));
    let (identity, chain) = node::chain(config, shutdown).await?;
    let (before, now) = (chain.stake(identity.address(), role).await?, chain.head().await?.timestamp);
    let delay = chain.parameters().await?.unbonding_delay;
    let pending = restarts(&before, amount, now, delay);
    ensure!(args.restart || pending.is_none(), "{}", pending.unwrap_or_default());
    let receipt = chain.send(Call::RequestUnstake { role, amount }).await?;
    let (view, now) = (chain.stake(identity.address(), role).await?, chain.head().await?.timestamp);
    let shown = Unbonding {
        transaction: receipt.transaction,
        gas: receipt.gas,
        unbonding: view.unbonding.into(),
        release_at: view.release_at,
    };
    output::print(config.json, &shown, || {
        let Unbonding { transaction, gas, unbonding, release_at } = &shown;
        let from = when::due(*release_at, now);
        format!("{unbonding} SNO unbond, to be withdrawn from {from} on (gas {gas}, transaction {transaction})")
    })
}

/// What a second request would do to stake that unbonds already; none if none does.
fn restarts(stake: &StakeView, amount: U256, now: u64, delay: u64) -> Option<String> {
    if stake.unbonding == 0 {
        return None;
    }
    let unbonding = Wei::from(stake.unbonding);
    let all = Wei(amount.saturating_add(unbonding.0));
    let until = when::due(now.saturating_add(delay), now);
    Some(if stake.release_at <= now {
        format!(
            "{unbonding} SNO can be withdrawn already, and would have to wait again, all {all} SNO until {until}: \
             `tensorlink withdraw` first, or give --restart"
        )
    } else {
        format!(
            "{unbonding} SNO unbond already, until {}: their time would start again, and all {all} SNO unbond until \
             {until}. Withdraw those first when they are free, or give --restart",
            when::due(stake.release_at, now)
        )
    })
}

async fn send(config: &Config, shutdown: &CancellationToken, call: Call, done: &str) -> Result<()> {
    let (_, chain) = node::chain(config, shutdown).await?;
    let receipt = chain.send(call).await?;
    let shown = Done { transaction: receipt.transaction, gas: receipt.gas };
    output::print(config.json, &shown, || format!("{done} (gas {}, transaction {})", shown.gas, shown.transaction))
}

/// Pays out unbonded stake and credit.
pub async fn withdraw(config: &Config, args: &WithdrawArgs, shutdown: &CancellationToken) -> Result<()> {
    let (identity, chain) = node::chain(config, shutdown).await?;
    let own = identity.address();
    let now = chain.head().await?.timestamp;
    let mut calls = Vec::new();
    for token in [chain.deployment().sno, Address::ZERO] {
        if !chain.credit(own, token).await?.is_zero() {
            calls.push((Call::Collect { token }, "collected what jobs have credited"));
        }
    }
    if !chain.gas_credit(own).await?.is_zero() {
        calls.push((Call::CollectGas, "collected what challenges have credited"));
    }
    let stake = chain.stake(own, role(args.role)).await?;
    if stake.unbonding > 0 && stake.release_at <= now {
        calls.push((Call::WithdrawStake { role: role(args.role) }, "withdrew unbonded stake"));
    } else if stake.unbonding > 0 {
        say!("{} SNO unbond at {}", Wei::from(stake.unbonding), when::due(stake.release_at, now));
    }
    if calls.is_empty() {
        anyhow::bail!("nothing to withdraw yet");
    }
    for (call, done) in calls {
        let receipt = chain.send(call).await?;
        let shown = Done { transaction: receipt.transaction, gas: receipt.gas };
        output::print(config.json, &shown, || format!("{done} (gas {})", shown.gas))?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Balance {
    account: Address,
    eth: Wei,
    sno: Wei,
    credit_eth: Wei,
    credit_sno: Wei,
    /// Of challenges: deposits that are back, and gas that is paid back.
    credit_gas: Wei,
    worker: StakeView,
    validator: StakeView,
    is_validator: bool,
}

/// Shows an account.
pub async fn balance(config: &Config, args: &BalanceArgs, shutdown: &CancellationToken) -> Result<()> {
    // Who only looks at somebody else needs no key.
    let (account, chain) = match &args.account {
        Some(text) => (address::parse(text)?, node::reader(config, shutdown).await?.1),
        None => {
            let (identity, chain) = node::chain(config, shutdown).await?;
            (identity.address(), chain)
        }
    };
    let sno = chain.deployment().sno;
    let shown = Balance {
        account,
        eth: Wei(chain.balance(account, Address::ZERO).await?),
        sno: Wei(chain.balance(account, sno).await?),
        credit_eth: Wei(chain.credit(account, Address::ZERO).await?),
        credit_sno: Wei(chain.credit(account, sno).await?),
        credit_gas: Wei(chain.gas_credit(account).await?),
        worker: chain.stake(account, Role::Worker).await?,
        validator: chain.stake(account, Role::Validator).await?,
        is_validator: chain.is_validator(account).await?,
    };
    let now = chain.head().await?.timestamp;
    output::print(config.json, &shown, || {
        let stake = |view: &StakeView| {
            let show = |wei: u128| Wei::from(wei);
            let until = match view.unbonding {
                0 => String::new(),
                _ => format!(", free at {}", when::due(view.release_at, now)),
            };
            let (bonded, locked, unbonding) = (show(view.bonded), show(view.locked), show(view.unbonding));
            format!("{bonded} bonded ({locked} locked), {unbonding} unbonding{until}")
        };
        output::table(&[
            ("account", shown.account.to_string()),
            ("ETH", shown.eth.to_string()),
            ("SNO", shown.sno.to_string()),
            ("credit", format!("{} SNO, {} ETH", shown.credit_sno, shown.credit_eth)),
            ("challenges", format!("{} ETH to collect", shown.credit_gas)),
            ("worker stake", stake(&shown.worker)),
            ("validator collateral", stake(&shown.validator)),
        ])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_request_is_warned_of_with_both_dates() {
        let sno = 10u128.pow(18);
        let now = 1_799_999_960;
        let told = |unbonding, release_at| {
            let stake = StakeView { unbonding, release_at, ..StakeView::default() };
            restarts(&stake, U256::from(2 * sno), now, 3_640)
        };
        assert_eq!(told(0, now + 40), None);
        let pending = told(3 * sno, now + 40).unwrap();
        for part in ["3 SNO unbond already, until 2027-01-15 08:00:00 UTC, in 40 s", "--restart"] {
            assert!(pending.contains(part), "`{part}` is not in {pending}");
        }
        assert!(pending.contains("all 5 SNO unbond until 2027-01-15 09:00:00 UTC"), "{pending}");
        let free = told(3 * sno, now).unwrap();
        assert!(
            free.contains("3 SNO can be withdrawn already") && free.contains("`tensorlink withdraw` first"),
            "{free}"
        );
    }
}
