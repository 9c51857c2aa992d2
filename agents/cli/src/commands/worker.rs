//! `tensorlink worker run`.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tensorlink_model::CacheEngine;
use tensorlink_node::budget::Budget;
use tensorlink_node::ports::ChainError;
use tensorlink_node::ports::chain::Role;
use tensorlink_node::price::Prices;
use tensorlink_node::{Ports, Roster};
use tensorlink_tensor::TorchEngine;
use tensorlink_validator::Witness;
use tensorlink_worker::{Context as WorkerContext, Limits, Worker, WorkerConfig, WorkerError};
use tokio_util::sync::CancellationToken;

use crate::amount::{parse_amount, parse_size};
use crate::args::WorkerArgs;
use crate::config::Config;
use crate::device;
use crate::node::Node;

/// Lanes of a worker at once.
const MAX_LANES: u16 = 8;
const DEFAULT_PRICE: &str = "0.000001";
const DEFAULT_DISK: &str = "10GiB";
/// 30 days, seconds.
const DEFAULT_MAX_DURATION: u64 = 2_592_000;
/// A day, seconds.
const DEFAULT_MAX_WAIT: u64 = 86_400;

/// Runs a worker until interrupted.
pub async fn run(config: &Config, args: &WorkerArgs, shutdown: CancellationToken) -> Result<()> {
    run_on(config, args, shutdown, |engine| engine, |ports| ports).await
}

/// Runs a worker whose engine is `wrap` of the real one, and whose world is `dress` of the real one.
pub async fn run_on<E>(
    config: &Config,
    args: &WorkerArgs,
    shutdown: CancellationToken,
    wrap: impl Fn(TorchEngine) -> E + Send + Sync + 'static,
    dress: impl FnOnce(Ports) -> Ports,
) -> Result<()>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    let file = &config.file.worker;
    let pick = |flag: &Option<String>, file: &Option<String>| flag.clone().or_else(|| file.clone());
    let engine = device::open(pick(&args.device, &file.device).as_deref())?;
    let memory = Budget::new(match pick(&args.memory, &file.memory) {
        Some(text) => parse_size(&text)?,
        None => engine.memory()? / 2,
    });
    let amount = |text: &str, flag: &str| -> Result<u128> {
        parse_amount(text)?.try_into().ok().with_context(|| format!("{flag} is too large"))
    };
    let price = amount(&pick(&args.price, &file.price).unwrap_or_else(|| DEFAULT_PRICE.into()), "--price")?;
    let eth_price = pick(&args.eth_price, &file.eth_price).map(|text| amount(&text, "--eth-price")).transpose()?;
    let max_stake = pick(&args.max_stake, &file.max_stake).map(|text| amount(&text, "--max-stake")).transpose()?;
    let duration = args.max_duration.or(file.max_duration).unwrap_or(DEFAULT_MAX_DURATION);
    let wait = args.max_wait.or(file.max_wait).unwrap_or(DEFAULT_MAX_WAIT);
    let disk = parse_size(&pick(&args.disk, &file.disk).unwrap_or_else(|| DEFAULT_DISK.into()))?;
    let make = device::factory(engine);

    let node = Node::start(config, disk, &shutdown).await?;
    node.announce(config, &shutdown).await?;
    let own = node.ports.identity.address();
    let stake = node.ports.chain.stake(own, Role::Worker).await?;
    if stake.bonded == 0 {
        bail!("{own} has no bonded stake: `tensorlink stake <amount>` first");
    }
    let (ports, wrap) = (dress(node.ports.clone()), Arc::new(wrap));
    let worked = loop {
        let (own_make, make, wrap) = (make.clone(), make.clone(), wrap.clone());
        let witness = Witness { auditor: Arc::new(node.auditor(move || own_make(), memory.clone(), 1).await?) };
        let context = WorkerContext {
            config: WorkerConfig {
                memory: memory.clone(),
                max_lanes: MAX_LANES,
                prices: Prices { sno: price, eth: eth_price },
                limits: Limits { stake: max_stake.unwrap_or(stake.bonded), duration, wait },
                credit: None,
            },
            ports: ports.clone(),
            engine: Arc::new(move || Ok(wrap(make()?))),
            roster: Arc::new(Roster::new(own)),
            stream_router: Default::default(),
        };
        match beside(witness, &shutdown, Worker::run(Arc::new(context), shutdown.clone())).await {
            // As after a restart: the journal has what this node did, and the events tell the rest.
            Err(WorkerError::Chain(error @ ChainError::Undone { .. })) if !shutdown.is_cancelled() => {
                tracing::warn!("{error}");
            }
            worked => break worked,
        }
    };
    node.net.shutdown().await;
    Ok(worked?)
}

/// Lets a witness look on while something is done.
async fn beside<T>(witness: Witness<TorchEngine>, shutdown: &CancellationToken, done: impl Future<Output = T>) -> T {
    let end = shutdown.child_token();
    let looking = async {
        if let Err(error) = witness.run(end.clone()).await {
            tracing::error!(%error, "claims of replicas are not looked at");
        }
    };
    let doing = async {
        let done = done.await;
        end.cancel();
        done
    };
    tokio::join!(looking, doing).1
}
