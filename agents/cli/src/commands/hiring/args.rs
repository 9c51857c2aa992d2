//! What jobs of either kind ask of workers, and what they offer.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::num::NonZeroU32;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::aim::{Aim, LeastTier, Rule, Stages};

/// What a job pays in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Token {
    /// The network's token.
    #[default]
    Sno,
    /// The chain's own.
    Eth,
}

/// What jobs of either kind ask of workers, and what they offer; `[hire]` of a job file.
#[derive(Args, Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HireArgs {
    /// Pipeline stages; with `--objective latency` or `throughput` also `auto`: as many as are best [default: 2, or
    /// those of the job that is resumed].
    #[arg(long, value_name = "NUMBER")]
    pub stages: Option<Stages>,
    /// What is to be small when workers are chosen, their order and the cut: the price; the time of a step or a token;
    /// or that of the slowest worker. By the latter two nobody is asked who is more than twice as dear as the cheapest
    /// that are enough.
    #[arg(long, value_enum, default_value_t)]
    pub objective: Aim,
    /// By which rule, for latency and throughput: best, or to compare it with others' rmw, rmw-smallest, rmw-cut,
    /// layer-aware, petals or parallax.
    #[arg(long, default_value_t, value_name = "RULE")]
    pub strategy: Rule,
    /// The slowest tier of workers that is hired, by what they measured: A from 20 teraflops on, B from 5, C any.
    #[arg(long, value_enum, default_value_t, ignore_case = true)]
    pub tier: LeastTier,
    /// Fewest megabytes a second of a hop from worker to worker, by what this machine measures to both; with
    /// `--objective latency` or `throughput` [default: any].
    #[arg(long, value_name = "MB")]
    pub min_bandwidth: Option<NonZeroU32>,
    /// Independent copies of the pipeline.
    #[arg(long, default_value_t = Self::default().replicas)]
    pub replicas: u16,
    /// Escrow, in SNO or ETH.
    #[arg(long, value_name = "AMOUNT")]
    pub deposit: String,
    /// What to pay in.
    #[arg(long, value_enum, default_value_t)]
    pub token: Token,
    /// SNO each worker must have at risk in this job.
    #[arg(long, default_value_t = Self::default().worker_stake, value_name = "AMOUNT")]
    pub worker_stake: String,
    /// Seconds in which a claim can be challenged [default: the shortest that the contracts allow].
    #[arg(long, value_name = "SECONDS")]
    pub challenge_window: Option<u32>,
    /// Seconds the job may take from its start.
    #[arg(long, default_value_t = Self::default().duration, value_name = "SECONDS")]
    pub duration: u64,
    /// Seconds to wait for enough workers.
    #[arg(long, default_value_t = Self::default().patience, value_name = "SECONDS")]
    pub patience: u64,
    /// Show terms and quote, post nothing.
    #[arg(long)]
    #[serde(skip)]
    pub dry_run: bool,
}

impl HireArgs {
    /// Pipeline stages, also where nothing was said of them.
    pub fn stages(&self) -> Stages {
        self.stages.unwrap_or(Stages::Exactly(2))
    }
}

/// Without a deposit, which must be named.
impl Default for HireArgs {
    fn default() -> Self {
        Self {
            stages: None,
            objective: Aim::default(),
            strategy: Rule::default(),
            tier: LeastTier::default(),
            min_bandwidth: None,
            replicas: 1,
            deposit: String::new(),
            token: Token::default(),
            worker_stake: "1000".into(),
            challenge_window: None,
            duration: 86_400,
            patience: 60,
            dry_run: false,
        }
    }
}
