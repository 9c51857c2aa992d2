//! Whether a command that starts a training job follows it.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::path::PathBuf;

use clap::Args;

use crate::watch::{Follow, Rules};

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
}

impl FollowArgs {
    /// How it is followed, if it is.
    pub fn follow(&self) -> Option<Follow<'_>> {
        let follow = Follow { report: self.report.as_deref(), out: self.out.as_deref(), rules: Rules::default() };
        self.watch.then_some(follow)
    }
}
