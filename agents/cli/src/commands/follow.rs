//! Whether a command that starts a training job follows it.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::watch::{Follow, Rules};

/// Seconds of silence after which a worker is given up.
const FAILOVER: u64 = 300;

/// The time after which a worker is given up, if it ever is, by what was said of it in seconds.
pub fn failover(said: Option<u64>) -> Option<Duration> {
    Some(said.unwrap_or(FAILOVER)).filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

/// Whether a job is followed once it runs.
#[derive(Args, Debug)]
pub struct FollowArgs {
    /// Stay and follow the job to its end.
    #[arg(long)]
    pub watch: bool,
    /// With --watch: also write what the job came to into this file, as JSON.
    #[arg(long, requires = "watch", value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// With --watch: new folder for a trained language model, as Hugging Face's loaders, `model sample` and `serve`
    /// read it.
    #[arg(long, requires = "watch", value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// With --watch: seconds of silence after which a worker is given up, and the job goes on without it, in another
    /// job [default: 300]. It does at once where a worker was convicted. 0: never.
    #[arg(long, requires = "watch", value_name = "SECONDS")]
    pub failover: Option<u64>,
}

impl FollowArgs {
    /// How it is followed, if it is.
    pub fn follow(&self) -> Option<Follow<'_>> {
        let (report, out) = (self.report.as_deref(), self.out.as_deref());
        let follow = Follow { report, out, rules: Rules::default(), failover: failover(self.failover) };
        self.watch.then_some(follow)
    }
}
