//! `tensorlink worker run`.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

pub mod section;

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;
use tensorlink_model::CacheEngine;
use tensorlink_node::budget::Budget;
use tensorlink_node::ports::chain::Role;
use tensorlink_node::ports::{ChainError, Net, Protocol};
use tensorlink_node::price::Prices;
use tensorlink_node::{Ports, Roster, blocking, link};
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_types::abi::JobKind;
use tensorlink_validator::Witness;
use tensorlink_worker::hiring::hours::Hours;
use tensorlink_worker::{Context as WorkerContext, Limits, Worker, WorkerConfig, WorkerError};
use tokio_util::sync::CancellationToken;

use crate::amount::{parse_amount, parse_size};
use crate::config::Config;
use crate::device;
use crate::node::Node;
use crate::owner::{self, Percent};
use crate::profile;

#[derive(Subcommand, Debug)]
pub enum WorkerCommand {
    /// Advertise, offer, execute, commit, get paid; until interrupted.
    #[command(after_help = "Example:\n  tensorlink worker run --memory 8GiB --price 0.000001")]
    Run(WorkerArgs),
}

#[derive(Args, Debug, Default)]
pub struct WorkerArgs {
    /// Memory for all lanes together, e.g. 8GiB [default: half of what is free].
    #[arg(long, env = "TENSORLINK_MEMORY", value_name = "SIZE")]
    pub memory: Option<String>,
    /// Asking price in SNO per billion multiply-adds [default: 0.000001].
    #[arg(long, env = "TENSORLINK_PRICE", value_name = "AMOUNT")]
    pub price: Option<String>,
    /// Asking price in ETH per billion multiply-adds [default: none, and no jobs that pay in ETH].
    #[arg(long, env = "TENSORLINK_ETH_PRICE", value_name = "AMOUNT")]
    pub eth_price: Option<String>,
    /// Most SNO to put at risk in one job [default: all that is bonded].
    #[arg(long, env = "TENSORLINK_MAX_STAKE", value_name = "AMOUNT")]
    pub max_stake: Option<String>,
    /// Longest job to take, from its start to its deadline [default: 2592000, 30 days].
    #[arg(long, env = "TENSORLINK_MAX_DURATION", value_name = "SECONDS")]
    pub max_duration: Option<u64>,
    /// Longest time for which a job that has not started may hold the stake [default: 86400, a day].
    #[arg(long, env = "TENSORLINK_MAX_WAIT", value_name = "SECONDS")]
    pub max_wait: Option<u64>,
    /// Hours of the day in which jobs are taken, UTC, e.g. 22:00-07:00 [default: any]. Those that were taken go on.
    #[arg(long, env = "TENSORLINK_HOURS", value_name = "FROM-TO")]
    pub hours: Option<Hours>,
    /// Most of the processors that other programs may use while jobs are taken, per cent, on average over a minute;
    /// where a GPU computes, also most of the time that they may be on it [default: any]. Jobs that were taken go on.
    /// Needs Linux.
    #[arg(long, env = "TENSORLINK_MAX_OTHER_LOAD", value_name = "PERCENT")]
    pub max_other_load: Option<Percent>,
    /// The only kind of job that is taken [default: both].
    #[arg(long, env = "TENSORLINK_ONLY", value_enum)]
    pub only: Option<Kind>,
    /// Whether to answer short bursts, within limits, by which others measure the bandwidth to this node [default:
    /// true].
    #[arg(long, env = "TENSORLINK_BURSTS", value_name = "BOOL")]
    pub bursts: Option<bool>,
    /// Disk for files that jobs need; what is left keeps others for a while [default: 10GiB].
    #[arg(long, env = "TENSORLINK_DISK", value_name = "SIZE")]
    pub disk: Option<String>,
    /// Device: cpu, cuda or cuda:N [default: cuda if there is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

/// A kind of job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Training.
    Training,
    /// Serving.
    Serving,
}

impl From<Kind> for JobKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Training => Self::Training,
            Kind::Serving => Self::Serving,
        }
    }
}

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
    let in_file = file.hours.as_deref().map(str::parse).transpose().context("[worker] hours")?;
    let (hours, only) = (args.hours.or(in_file), args.only.or(file.only).map(JobKind::from));
    let disk = parse_size(&pick(&args.disk, &file.disk).unwrap_or_else(|| DEFAULT_DISK.into()))?;
    let measured = engine.clone();
    let speed = blocking(move || profile::known_or_measured(&measured)).await?;
    let on_gpu = engine.device() != Device::Cpu;
    let make = device::factory(engine);
    let in_use = owner::watch(args.max_other_load.or(file.max_other_load), on_gpu, &shutdown).await?;

    let node = Node::start(config, disk, &shutdown).await?;
    node.announce(config, &shutdown).await?;
    let own = node.ports.identity.address();
    let stake = node.ports.chain.stake(own, Role::Worker).await?;
    if stake.bonded == 0 {
        bail!("{own} has no bonded stake: `tensorlink stake <amount>` first");
    }
    if args.bursts.or(file.bursts).unwrap_or(true) {
        let answering = link::answer_all(node.net.serve(Protocol::Burst).await?);
        let end = shutdown.clone();
        tokio::spawn(async move { end.run_until_cancelled(answering).await });
    }
    let (ports, wrap) = (dress(node.ports.clone()), Arc::new(wrap));
    let worked = loop {
        let (own_make, make, wrap) = (make.clone(), make.clone(), wrap.clone());
        let witness = Witness { auditor: Arc::new(node.auditor(move || own_make(), memory.clone(), 1).await?) };
        let context = WorkerContext {
            config: WorkerConfig {
                memory: memory.clone(),
                max_lanes: MAX_LANES,
                speed,
                prices: Prices { sno: price, eth: eth_price },
                limits: Limits { stake: max_stake.unwrap_or(stake.bonded), duration, wait, hours, only },
                in_use: in_use.clone(),
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
