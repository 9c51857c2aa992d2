//! `tensorlink train`: a job file to a model in a folder.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

pub(super) mod file;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use tokio_util::sync::CancellationToken;

use self::file::{JobFile, Terms};
use crate::commands::follow::failover;
use crate::commands::post::{Order, place};
use crate::config::Config;
use crate::watch::Follow;

/// Help: a job file with all its fields.
pub const EXAMPLE: &str = r#"A job file, whose paths are relative to it:
  model = "king-james.json"       # or a table [model] with the same fields
  data = "kjv-1100k.txt.gz"
  steps_per_interval = 50         # steps between two claims
  out = "king-james"              # new folder for a trained language model
  evaluate_every = 4              # intervals between two tests on text that no worker sees; else at the end only
  max_loss = 2.0                  # stop if the loss exceeds so many times the first one
  max_saturation = 0.05           # … or if a larger share of a weight's elements is at the limit of its type
  failover = 300                  # seconds of silence after which a worker is replaced, in another job; 0: never
  [hire]                          # as the options of `job post`
  stages = 2
  replicas = 1
  deposit = "50"
  challenge_window = 60
  [early_stop]                    # stop, and pay for what was done, when …
  loss = 1.3                      # … the loss (of those tests, or without them as workers report it) is as low as this,
  patience = 4                    # … or no lower than it was so many intervals ago,
  min_delta = 0.001               # by at least so much

Examples:
  tensorlink train examples/king-james.toml --dry-run
  tensorlink train examples/king-james.toml --out ./king-james
  tensorlink model sample ./king-james --prompt "In the beginning" --tokens 200"#;

#[derive(Args, Debug)]
pub struct TrainArgs {
    /// The job file (TOML).
    #[arg(value_name = "JOB.toml")]
    pub job: PathBuf,
    /// New folder for a trained language model, in place of the file's `out`.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Also write what the job came to into this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Show terms and quote, post nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// Posts what the file describes, follows it, and writes what it has learned to a folder.
pub async fn run(config: &Config, args: &TrainArgs, shutdown: CancellationToken) -> Result<()> {
    let mut job = JobFile::read(&args.job, Terms::Chain)?;
    job.hire.dry_run = args.dry_run;
    let out = args.out.as_ref().or(job.out.as_ref());
    let (report, out) = (args.report.as_deref(), out.map(PathBuf::as_path));
    let follow = Follow { report, out, rules: job.rules(), failover: failover(job.failover) };
    let order = Order {
        draft: job.draft()?,
        steps_per_interval: job.steps_per_interval,
        hire: &job.hire,
        follow: Some(follow),
    };
    place(config, order, shutdown, |ports| ports).await
}
