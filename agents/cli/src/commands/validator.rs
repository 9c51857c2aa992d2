//! `tensorlink validator run`.
#![allow(missing_docs, reason = "doc comments here are the help texts; clap shows the rest by name")]

pub mod section;

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use tensorlink_node::ports::ChainError;
use tensorlink_node::{Ports, Roster};
use tensorlink_program::Engine;
use tensorlink_tensor::TorchEngine;
use tensorlink_validator::{Rate, TURNS, Validator, ValidatorError};
use tokio_util::sync::CancellationToken;

use crate::amount::parse_size;
use crate::config::Config;
use crate::device;
use crate::node::Node;

const DEFAULT_RATE: f64 = 0.1;
const DEFAULT_DISK: &str = "10GiB";

#[derive(Subcommand, Debug)]
pub enum ValidatorCommand {
    /// Audit claims, those that the chain draws and some by choice; convict wrong ones; until interrupted.
    #[command(after_help = "Example:\n  tensorlink validator run --rate 0.1")]
    Run(ValidatorArgs),
}

#[derive(Args, Debug, Default)]
pub struct ValidatorArgs {
    /// Share of claims to audit on top of those that the chain draws, 0 to 1 [default: 0.1].
    #[arg(long, env = "TENSORLINK_AUDIT_RATE", value_name = "SHARE")]
    pub rate: Option<f64>,
    /// Disk for what answers rest on; what is left keeps other files for a while [default: 10GiB].
    #[arg(long, env = "TENSORLINK_DISK", value_name = "SIZE")]
    pub disk: Option<String>,
    /// Device: cpu, cuda or cuda:N [default: cuda if there is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

/// Runs a validator until interrupted.
pub async fn run(config: &Config, args: &ValidatorArgs, shutdown: CancellationToken) -> Result<()> {
    run_on(config, args, shutdown, |engine| engine, |ports| ports).await
}

/// Runs a validator whose engine is `wrap` of the real one, and whose world is `dress` of the real one.
pub async fn run_on<E: Engine + Send + 'static>(
    config: &Config,
    args: &ValidatorArgs,
    shutdown: CancellationToken,
    wrap: impl Fn(TorchEngine) -> E + Send + Sync + 'static,
    dress: impl FnOnce(Ports) -> Ports,
) -> Result<()> {
    let share = args.rate.or(config.file.validator.rate).unwrap_or(DEFAULT_RATE);
    let rate = Rate::new(share).with_context(|| format!("--rate {share} is not between 0 and 1"))?;
    let disk = args.disk.as_deref().or(config.file.validator.disk.as_deref());
    let disk = parse_size(disk.unwrap_or(DEFAULT_DISK))?;
    let (make, memory) = device::for_audits(args.device.as_deref().or(config.file.validator.device.as_deref()))?;
    // It runs all the time, so others are reached through it, unless somebody said otherwise.
    let config = &Config { relay: config.relay.or(Some(!config.behind_nat)), ..config.clone() };
    let mut node = Node::start(config, disk, &shutdown).await?;
    node.ports = dress(node.ports);
    let wrap = Arc::new(wrap);
    node.announce(config, &shutdown).await?;
    let own = node.ports.identity.address();
    if !node.ports.chain.is_validator(own).await? {
        let needed = node.ports.chain.parameters().await?.validator_collateral;
        bail!(
            "{own} lacks a validator's collateral of {} SNO: `tensorlink stake <amount> --role validator` first",
            crate::amount::Wei::from(needed)
        );
    }
    let ended = loop {
        let (make, wrap) = (make.clone(), wrap.clone());
        let auditor = node.auditor(move || Ok(wrap(make()?)), memory.clone(), TURNS).await?;
        let validator = Validator { rate, roster: Arc::new(Roster::new(own)), auditor: Arc::new(auditor) };
        match validator.run(shutdown.clone()).await {
            // As after a restart: the journal has what this node did, and the events tell the rest.
            Err(ValidatorError::Chain(error @ ChainError::Undone { .. })) if !shutdown.is_cancelled() => {
                tracing::warn!("{error}");
            }
            ended => break ended,
        }
    };
    node.net.shutdown().await;
    Ok(ended?)
}
