//! A worker that lies about one number: `tensorlink worker run` over a corrupted engine.
//!
//! Takes the same arguments as `tensorlink`, and `TENSORLINK_VILLAIN_STEP` for the step it lies at. Test-only: the product holds no
//! cheating code.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;
use tensorlink::args::{Cli, Command, WorkerCommand};
use tensorlink::commands::worker;
use tensorlink::config::Config;
use tensorlink::process;
use tensorlink_e2e::corrupted::{Corrupted, Lie};
use tensorlink_types::Opcode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    process::log(cli.common.verbose);
    process::run(|shutdown| async move {
        let Command::Worker(WorkerCommand::Run(args)) = &cli.command else {
            bail!("a villain only runs as a worker");
        };
        let config = Config::load(&cli.common)?;
        let step = std::env::var("TENSORLINK_VILLAIN_STEP").unwrap_or_else(|_| "0".into());
        let step = step.parse().with_context(|| format!("TENSORLINK_VILLAIN_STEP={step:?} is not a step"))?;
        let lie = Lie { step, opcode: Opcode::MatMul, element: 5 };
        worker::run_on(&config, args, shutdown, move |engine| Corrupted::new(engine, lie)).await
    })
}
