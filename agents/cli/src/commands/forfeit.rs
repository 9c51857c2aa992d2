//! `tensorlink forfeit`: gives up an answer that was sealed and is lost.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;
use tensorlink_node::ports::chain::{JobView, Parameters};
use tensorlink_node::ports::{AuditMove, Call, Chain};
use tensorlink_types::abi::Claim;
use tensorlink_types::{B256, JobId, Lane};
use tokio_util::sync::CancellationToken;

use super::challenge;
use crate::amount::Wei;
use crate::config::Config;
use crate::{node, output};

#[derive(Args, Debug)]
pub struct ForfeitArgs {
    /// The job's number.
    #[arg(long, required_unless_present = "receipt")]
    pub job: Option<u64>,
    /// Stage of the lane.
    #[arg(long)]
    pub stage: u16,
    /// Replica of the lane.
    #[arg(long, default_value_t = 0, conflicts_with = "receipt")]
    pub replica: u16,
    /// Interval of the claim.
    #[arg(long, required_unless_present = "receipt")]
    pub interval: Option<u32>,
    /// Receipts of texts of a serving job instead: what `GET /v1/receipts/{id}` of its gateway answers.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["job", "interval"], requires = "text")]
    pub receipt: Option<PathBuf>,
    /// Number of the text, with --receipt.
    #[arg(long, requires = "receipt")]
    pub text: Option<u32>,
    /// Pay the penalty.
    #[arg(long)]
    pub yes: bool,
}

#[derive(Serialize)]
struct Forfeited {
    transaction: B256,
    gas: u64,
    /// The most that the penalty can have been, wei of SNO: where there was less collateral, all of that.
    penalty: Wei,
}

/// Gives an answer up, once its price is agreed to.
pub async fn run(config: &Config, args: &ForfeitArgs, shutdown: &CancellationToken) -> Result<()> {
    let (_, chain) = node::chain(config, shutdown).await?;
    let claim = match &args.receipt {
        Some(file) => {
            let texts = challenge::read(file)?.texts.into_iter().filter(|text| args.text == Some(text.text));
            let mut receipts = texts.flat_map(|text| text.stages).map(|receipt| receipt.claim);
            let of_stage = receipts.find(|claim| claim.stage == args.stage);
            of_stage.context("the file has no receipt of that text and stage")?
        }
        None => committed(chain.as_ref(), args).await?,
    };
    let job = chain.job(JobId(claim.job)).await?.with_context(|| format!("there is no job {}", claim.job))?;
    let penalty = penalty(&chain.parameters().await?, &job);
    ensure!(
        args.yes,
        "to give an answer up costs {penalty} SNO of the collateral, as a wrong one does, and all of it is burned. If \
         the validator's data folder is there, start the validator instead: it shows what it has sealed, for nothing. \
         Otherwise give --yes"
    );
    let receipt = chain.send(Call::Audit(Box::new(AuditMove::Forfeit { claim }))).await?;
    let shown = Forfeited { transaction: receipt.transaction, gas: receipt.gas, penalty };
    output::print(config.json, &shown, || {
        let Forfeited { transaction, gas, penalty } = &shown;
        format!("the answer is given up for {penalty} SNO (gas {gas}, transaction {transaction})")
    })
}

/// The claim that the arguments name.
async fn committed(chain: &dyn Chain, args: &ForfeitArgs) -> Result<Claim> {
    let (Some(job), Some(interval)) = (args.job, args.interval) else {
        bail!("name a claim with --job, --stage and --interval, or a file with --receipt");
    };
    let lane = Lane { job: JobId(job), stage: args.stage, replica: args.replica };
    let events = chain.past_events(chain.deployment().block, chain.head().await?.number).await?;
    Ok(challenge::committed(&events, lane, interval)?.1.clone())
}

/// What a wrong answer about a lane of the job costs.
fn penalty(parameters: &Parameters, job: &JobView) -> Wei {
    let share = parameters.validator_collateral.saturating_mul(parameters.audit_penalty_bps.into()) / 10_000;
    share.min(job.worker_stake).into()
}
