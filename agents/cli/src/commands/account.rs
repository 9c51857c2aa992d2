//! `tensorlink stake|unstake|withdraw|balance`.

use anyhow::Result;
use serde::Serialize;
use tensorlink_node::ports::Call;
use tensorlink_node::ports::chain::{Role, StakeView};
use tensorlink_types::{Address, B256, address};
use tokio_util::sync::CancellationToken;

use crate::amount::{Wei, parse_amount};
use crate::args::{RoleArg, StakeArgs, WithdrawArgs};
use crate::config::Config;
use crate::{node, output, when};

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

/// Starts unbonding SNO, and says until when.
pub async fn unstake(config: &Config, args: &StakeArgs, shutdown: &CancellationToken) -> Result<()> {
    let amount = parse_amount(&args.amount)?;
    let (identity, chain) = node::chain(config, shutdown).await?;
    let receipt = chain.send(Call::RequestUnstake { role: role(args.role), amount }).await?;
    let view = chain.stake(identity.address(), role(args.role)).await?;
    let now = chain.head().await?.timestamp;
    let shown = Done { transaction: receipt.transaction, gas: receipt.gas };
    output::print(config.json, &shown, || {
        let until = when::due(view.release_at, now);
        format!("unbonding until {until} (gas {}, transaction {})", shown.gas, shown.transaction)
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
    let stake = chain.stake(own, role(args.role)).await?;
    if stake.unbonding > 0 && stake.release_at <= now {
        calls.push((Call::WithdrawStake { role: role(args.role) }, "withdrew unbonded stake"));
    } else if stake.unbonding > 0 {
        eprintln!("{} SNO unbond at {}", Wei::from(stake.unbonding), when::due(stake.release_at, now));
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
    worker: StakeView,
    validator: StakeView,
    is_validator: bool,
}

/// Shows an account.
pub async fn balance(config: &Config, account: Option<&str>, shutdown: &CancellationToken) -> Result<()> {
    // Who only looks at somebody else needs no key.
    let (account, chain) = match account {
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
            ("worker stake", stake(&shown.worker)),
            ("validator collateral", stake(&shown.validator)),
        ])
    })
}
