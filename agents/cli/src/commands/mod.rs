//! One file a command.

pub mod account;
pub mod bench;
pub mod challenge;
pub mod check;
pub mod demand;
pub mod dispute;
mod failover;
pub mod follow;
pub mod forfeit;
pub mod hiring;
pub mod job;
pub mod key;
mod local;
pub mod localnet;
pub mod model;
pub mod native;
pub mod post;
pub mod post_serving;
mod rest;
pub mod resume;
pub mod serve;
mod serve_by_workers;
pub mod shell;
pub mod train;
pub mod validator;
pub mod worker;

use anyhow::{Context, Result};
use clap::CommandFactory;
use tensorlink_node::ports::Chain;
use tensorlink_node::ports::chain::JobView;
use tensorlink_types::JobId;
use tokio_util::sync::CancellationToken;

use crate::args::{Cli, Command};
use crate::config::Config;

/// Runs a command.
pub async fn run(cli: Cli, shutdown: CancellationToken) -> Result<()> {
    let config = match cli.command {
        // The network has a configuration of its own, and must be removable whatever is in the file that others read.
        Command::Localnet(_) | Command::Completions(_) | Command::Man(_) => Config::defaults()?,
        _ => Config::load(&cli.common)?,
    };
    match cli.command {
        Command::Key(command) => key::run(&config, command),
        Command::Worker(worker::WorkerCommand::Run(args)) => worker::run(&config, &args, shutdown).await,
        Command::Validator(validator::ValidatorCommand::Run(args)) => validator::run(&config, &args, shutdown).await,
        Command::Job(job::JobCommand::Post(args)) => post::run(&config, &args, shutdown).await,
        Command::Job(command) => job::run(&config, command, shutdown).await,
        Command::Train(args) => train::run(&config, &args, shutdown).await,
        Command::Native(command) => native::run(&config, command, shutdown).await,
        Command::Stake(args) => account::stake(&config, &args, &shutdown).await,
        Command::Unstake(args) => account::unstake(&config, &args, &shutdown).await,
        Command::Withdraw(args) => account::withdraw(&config, &args, &shutdown).await,
        Command::Balance(args) => account::balance(&config, &args, &shutdown).await,
        Command::Challenge(args) => challenge::run(&config, &args, shutdown).await,
        Command::Forfeit(args) => forfeit::run(&config, &args, &shutdown).await,
        Command::Demand(args) => demand::run(&config, &args, shutdown).await,
        Command::Dispute(command) => dispute::run(&config, command, &shutdown).await,
        Command::Model(command) => model::run(&config, command, shutdown).await,
        Command::Serve(args) => serve::run(&config, args, shutdown).await,
        Command::Localnet(command) => localnet::run(&cli.common, command, &shutdown).await,
        Command::Check => check::run(&config, &shutdown).await,
        Command::Bench(args) => bench::run(&config, &args, shutdown).await,
        Command::Completions(args) => shell::completions(&mut Cli::command(), &args),
        Command::Man(args) => shell::man(Cli::command(), &args),
    }
}

/// A job as the chain has it, or where to look for those that there are.
async fn find_job(chain: &dyn Chain, job: JobId) -> Result<JobView> {
    let view = chain.job(job).await?;
    view.with_context(|| format!("there is no job {job}; `tensorlink job list` shows those that are"))
}
