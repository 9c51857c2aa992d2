//! `tensorlink validator run`.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tensorlink_graph::Engine;
use tensorlink_node::ports::ChainError;
use tensorlink_node::{Ports, Roster};
use tensorlink_tensor::TorchEngine;
use tensorlink_validator::{Rate, TURNS, Validator, ValidatorError};
use tokio_util::sync::CancellationToken;

use crate::args::ValidatorArgs;
use crate::config::Config;
use crate::device;
use crate::node::Node;

const DEFAULT_RATE: f64 = 0.1;
/// Disk for what is fetched for audits, bytes.
const DISK: u64 = 10 << 30;

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
    let engine = device::open(args.device.as_deref().or(config.file.validator.device.as_deref()))?;
    let memory = engine.memory()? / 2;
    let make = device::factory(engine);
    let mut node = Node::start(config, DISK, &shutdown).await?;
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
        let auditor = node.auditor(move || Ok(wrap(make()?)), memory, TURNS).await?;
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
