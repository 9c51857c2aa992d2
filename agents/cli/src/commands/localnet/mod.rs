//! `tensorlink localnet`: a network on this machine, in processes that outlive the command.
//!
//! | module | what lives there |
//! |---|---|
//! | `folder` | where it lies, and the lock on it |
//! | `state` | what is remembered on disk |
//! | `process` | processes that are detached, and ended without mistaking another for them |
//! | `ports` | ports that are free |
//! | `programs` | where anvil, the villain, the examples and the model lie |
//! | `chain` | anvil, the contracts, money |
//! | `nodes` | keys, configurations and processes of validator, workers and villains |
//! | `gateway` | the gateway |
//! | `up`, `resume`, `down`, `status`, `faucet`, `logs`, `next` | the commands, and what to try next |
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

mod chain;
mod down;
mod faucet;
mod folder;
mod gateway;
mod logs;
mod next;
mod nodes;
mod ports;
mod process;
mod programs;
mod resume;
mod state;
mod status;
mod up;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use tokio_util::sync::CancellationToken;

use crate::config::Common;
use crate::quantized::loss::Acceptance;

/// Help: the commands in the order in which one tries them.
pub const EXAMPLES: &str = "\
Examples:
  tensorlink localnet up                     start it, or the parts of it that do not run; prints what to try
  tensorlink localnet status                 who runs, with which stake, at which address
  tensorlink localnet faucet --sno 500       500 SNO for the configured key
  tensorlink localnet add-villain            a worker that lies, to see it convicted
  tensorlink localnet logs validator --follow
  tensorlink localnet down                   stop everything, and remove all that it wrote

It lies in the folder `localnet` of TENSORLINK_HOME [default: ~/.tensorlink].";

#[derive(Subcommand, Debug)]
pub enum LocalnetCommand {
    /// Start the network; where it exists already, start the parts of it that do not run.
    Up(UpArgs),
    /// Show who runs, the chain's height and the gateway's URL.
    Status,
    /// Give an account SNO and ETH.
    Faucet(FaucetArgs),
    /// Start another worker, funded and staked; or one that was stopped, by its name.
    AddWorker(AddWorkerArgs),
    /// Start a worker that lies, and asks less than the others so that it is hired. For the program `villain` of
    /// the tests.
    AddVillain(AddVillainArgs),
    /// Show the last lines that the processes have written.
    Logs(LogsArgs),
    /// Stop nodes by their names; without a name stop everything, and remove all that the network wrote.
    Down {
        /// Names as `localnet status` shows them.
        names: Vec<String>,
    },
}

#[derive(Args, Debug)]
pub struct UpArgs {
    /// Workers to start.
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub workers: u16,
    /// Folder of a model for the gateway, or a .gguf file [default: all-MiniLM-L6-v2, where script/setup has put it].
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_gateway")]
    pub model: Option<PathBuf>,
    #[command(flatten)]
    pub acceptance: Acceptance,
    /// Start no gateway.
    #[arg(long)]
    pub no_gateway: bool,
    /// Address of the gateway.
    #[arg(long, env = "TENSORLINK_HTTP", default_value = "127.0.0.1:8090", value_name = "ADDR")]
    pub http: SocketAddr,
    /// Seconds between two blocks.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=60), value_name = "S")]
    pub block_time: u64,
    /// Share of claims that the validator audits, 0 to 1.
    #[arg(long, default_value_t = 1.0, value_name = "SHARE")]
    pub validator_rate: f64,
}

#[derive(Args, Debug)]
pub struct FaucetArgs {
    /// The account [default: that of the configured key].
    pub address: Option<String>,
    /// SNO.
    #[arg(long, default_value = "1000", value_name = "AMOUNT")]
    pub sno: String,
    /// ETH.
    #[arg(long, default_value = "10", value_name = "AMOUNT")]
    pub eth: String,
}

#[derive(Args, Debug)]
pub struct AddWorkerArgs {
    /// Its name [default: the next of ada, ben, cleo, dan, eve, fay, gil, hana, worker-9, ...].
    pub name: Option<String>,
    /// Memory for its lanes [default: 2GiB, or what it had].
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Asking price in SNO per billion multiply-adds [default: 0.001, or what it had].
    #[arg(long, value_name = "AMOUNT")]
    pub price: Option<String>,
    /// SNO to bond.
    #[arg(long, default_value = nodes::STAKE, value_name = "SNO")]
    pub stake: String,
}

#[derive(Args, Debug)]
pub struct AddVillainArgs {
    /// Its name.
    #[arg(default_value = "mallory")]
    pub name: String,
    /// Kind of operator whose output it falsifies, e.g. mat_mul or head_mix.
    #[arg(long, default_value = "mat_mul")]
    pub operator: String,
    /// The step at which it lies; of a text, its number of tokens [default: every one].
    #[arg(long, value_name = "N")]
    pub step: Option<u32>,
    /// SNO to bond.
    #[arg(long, default_value = nodes::STAKE, value_name = "SNO")]
    pub stake: String,
}

#[derive(Args, Debug)]
pub struct LogsArgs {
    /// Whose [default: everybody's, each line with a name before it].
    pub name: Option<String>,
    /// Go on until interrupted.
    #[arg(long)]
    pub follow: bool,
    /// Lines of each to begin with.
    #[arg(long, default_value_t = 40, value_name = "N")]
    pub lines: usize,
}

/// Runs a localnet command.
pub async fn run(common: &Common, command: LocalnetCommand, shutdown: &CancellationToken) -> Result<()> {
    match command {
        LocalnetCommand::Up(args) => Box::pin(up::run(common, &args, shutdown)).await,
        LocalnetCommand::Status => status::run(common.json, shutdown).await,
        LocalnetCommand::Faucet(args) => faucet::run(common, &args, shutdown).await,
        LocalnetCommand::AddWorker(args) => nodes::add::worker(common.json, &args, shutdown).await,
        LocalnetCommand::AddVillain(args) => nodes::add::villain(common.json, &args, shutdown).await,
        LocalnetCommand::Logs(args) => logs::run(&args, shutdown).await,
        LocalnetCommand::Down { names } => down::run(&names).await,
    }
}
