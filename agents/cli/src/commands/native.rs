//! `tensorlink native`: floats on workers that the user names. Not provable, and everything says so first.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

mod train;
mod words;

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use serde::Serialize;
use tensorlink_native::{DeviceClass, Host, Listed, NOTICE};
use tensorlink_types::{Address, address};
use tokio_util::sync::CancellationToken;

pub use self::train::NativeTrainArgs;
use crate::amount::parse_size;
use crate::config::Config;
use crate::native::Libtorch;
use crate::node::World;
use crate::{keys, output};

/// Disk for tasks and states, unless said otherwise.
const DISK: &str = "10GiB";

#[derive(Subcommand, Debug)]
pub enum NativeCommand {
    /// Not provable: compute floats for the users that are named, until interrupted. No stake, no pay, no chain.
    #[command(
        after_help = "Example:\n  tensorlink native work --for 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 --listen /ip4/0.0.0.0/tcp/4001"
    )]
    Work(WorkArgs),
    /// Not provable: train in floats on the workers that are named; a drawn share of their work is repeated
    /// and compared.
    #[command(after_help = "\
Example:
  tensorlink native train examples/king-james.toml --worker /ip4/10.0.0.2/tcp/4001/p2p/16Uiu2... \\
      --worker /ip4/10.0.0.3/tcp/4001/p2p/16Uiu2... --precision bf16 --checks 0.05 --out ./king-james

The job file is that of `tensorlink train`; what it says of hiring, claims and early stops is not looked at.
A training that was interrupted goes on from where it was when the same command is given again.")]
    Train(NativeTrainArgs),
}

#[derive(Args, Debug)]
pub struct WorkArgs {
    /// Addresses of the users to work for, as their `tensorlink key address` says; nobody else gets
    /// anything. Repeatable.
    #[arg(long = "for", required = true, value_delimiter = ',', value_name = "ADDRESS", value_parser = address::parse)]
    pub users: Vec<Address>,
    /// Disk for tasks and states [default: 10GiB].
    #[arg(long, value_name = "SIZE")]
    pub disk: Option<String>,
    /// Device: cpu, cuda or cuda:N [default: cuda if there is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

/// What a worker says when it is up.
#[derive(Serialize)]
struct Up {
    provable: bool,
    notice: &'static str,
    worker: Address,
    class: DeviceClass,
    /// What users give as `--worker`.
    addresses: Vec<String>,
}

/// Runs a command.
pub async fn run(config: &Config, command: NativeCommand, shutdown: CancellationToken) -> Result<()> {
    match command {
        NativeCommand::Work(args) => work(config, &args, shutdown).await,
        NativeCommand::Train(args) => train::run(config, &args, shutdown).await,
    }
}

async fn work(config: &Config, args: &WorkArgs, shutdown: CancellationToken) -> Result<()> {
    let floats = Libtorch::open(args.device.as_deref())?;
    let identity = keys::load(config)?;
    let disk = parse_size(args.disk.as_deref().unwrap_or(DISK))?;
    let world = World::join(config, &identity, disk, &shutdown).await?;
    let listening = world.net.listen_addresses().await?;
    ensure!(!listening.is_empty(), "it listens nowhere: give --listen");
    let up = Up {
        provable: false,
        notice: NOTICE,
        worker: identity.address(),
        class: tensorlink_native::Floats::class(&floats),
        addresses: listening.iter().map(ToString::to_string).collect(),
    };
    output::print(config.json, &up, || {
        let at = up.addresses.iter().map(|address| format!("\n  --worker {address}"));
        format!(
            "{NOTICE}\nworker {} ({}) listens; its users give one of{}",
            up.worker,
            up.class,
            at.collect::<String>()
        )
    })?;
    let host = Host::new(world.store.clone(), Arc::new(floats), Listed(args.users.iter().copied().collect()));
    let served = host.serve(world.net.as_ref(), shutdown).await;
    world.net.shutdown().await;
    served.context("the worker stops")
}
