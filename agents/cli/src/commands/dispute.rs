//! `tensorlink dispute list|show|explain`: what was challenged, and what was proven. Reads the chain only, and needs
//! no key.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use tensorlink_types::{B256, JobId, Lane};
use tokio_util::sync::CancellationToken;

use crate::advice;
use crate::config::Config;
use crate::dispute::look::{self, Which};
use crate::dispute::words::list::Row;
use crate::dispute::{Dispute, Docket, files, names, words};
use crate::{node, output};

#[derive(Subcommand, Debug)]
pub enum DisputeCommand {
    /// Show every challenge, conviction, demand for data and penalty of an auditor so far: whose turn it is, how
    /// it ended.
    List {
        /// Only those of this job.
        #[arg(long)]
        job: Option<u64>,
    },
    /// Show one dispute at length: the claim, every move with its transaction, gas and clocks, how it ended, and
    /// the money.
    #[command(after_help = "\
Examples:
  tensorlink dispute show 4
  tensorlink dispute show --claim 0x1234...    also where nobody challenged the claim before it was convicted
  tensorlink dispute show --job 1 --stage 0 --interval 2")]
    Show(WhichDispute),
    /// Explain one dispute in plain words: what was claimed, what is wrong with it, who pays; of a challenge under way,
    /// what has to happen. Operators have their names in the model where the job's files can be had, from this machine,
    /// peers or an IPFS daemon.
    #[command(after_help = "\
Examples:
  tensorlink dispute explain 4
  tensorlink dispute explain --claim 0x1234... --ipfs http://127.0.0.1:5001
  tensorlink dispute explain --job 1 --stage 0 --interval 2")]
    Explain(WhichDispute),
}

/// A dispute, by its challenge or by its claim.
#[derive(Args, Debug)]
pub struct WhichDispute {
    /// Number of the challenge.
    #[arg(conflicts_with_all = ["claim", "job"])]
    pub challenge: Option<u64>,
    /// Id of the claim, or of a convicted receipt.
    #[arg(long, value_name = "ID", conflicts_with = "job")]
    pub claim: Option<B256>,
    /// Job of the claim.
    #[arg(long, requires = "stage", requires = "interval")]
    pub job: Option<u64>,
    /// Stage of the claim's lane.
    #[arg(long, requires = "job")]
    pub stage: Option<u16>,
    /// Replica of the claim's lane.
    #[arg(long, default_value_t = 0)]
    pub replica: u16,
    /// Interval of the claim; of a receipt, the number of its text.
    #[arg(long, requires = "job")]
    pub interval: Option<u32>,
}

/// A dispute in facts and in words.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    dispute: Dispute,
    text: String,
}

/// Runs a dispute command.
pub async fn run(config: &Config, command: DisputeCommand, shutdown: &CancellationToken) -> Result<()> {
    let (nobody, chain) = node::reader(config, shutdown).await?;
    let (docket, now) = look::docket(chain.as_ref()).await?;
    match command {
        DisputeCommand::List { job } => list(config, &docket, job.map(JobId)),
        DisputeCommand::Show(which) => {
            let (dispute, _) = look::dispute(chain.as_ref(), (&docket, now), choose(&which)?).await?;
            output::print(config.json, &dispute, || words::show::show(&dispute))
        }
        DisputeCommand::Explain(which) => {
            let (mut dispute, proof) = look::dispute(chain.as_ref(), (&docket, now), choose(&which)?).await?;
            if names::wanted(&dispute) {
                let source = files::of(chain.as_ref(), &docket, &dispute, proof.as_ref()).await;
                match Box::pin(files::program(config, (nobody, chain), source, shutdown)).await {
                    Ok(program) => names::write(&mut dispute, &program),
                    Err(error) => dispute.nameless = Some(advice::words(&error)),
                }
            }
            let text = words::explain(&dispute);
            let explained = Explained { dispute, text };
            output::print(config.json, &explained, || explained.text.clone())
        }
    }
}

fn choose(args: &WhichDispute) -> Result<Which> {
    Ok(match *args {
        WhichDispute { challenge: Some(number), .. } => Which::Challenge(number),
        WhichDispute { claim: Some(id), .. } => Which::Claim(id.into()),
        WhichDispute { job: Some(job), stage: Some(stage), replica, interval: Some(interval), .. } => {
            Which::Of(Lane { job: JobId(job), stage, replica }, interval)
        }
        _ => bail!("name a challenge by its number, or a claim with --claim, or with --job, --stage and --interval"),
    })
}

fn list(config: &Config, docket: &Docket, of: Option<JobId>) -> Result<()> {
    if let Some(job) = of
        && docket.job(job).is_none()
    {
        bail!("there is no job {job}; `tensorlink job list` shows those that are");
    }
    let challenges = docket.challenges().filter_map(|(id, challenge)| {
        let claimed = docket.claimed(id)?;
        Some(Row::challenge(&claimed, &challenge))
    });
    let convictions = docket.convictions().iter().filter_map(|conviction| {
        let claimed = docket.claimed(conviction.claim)?;
        Some(Row::conviction(&claimed, conviction))
    });
    let aside = docket.aside();
    let demands = aside.demands().map(|demand| Row::demand(demand, docket.now(), docket.worker(demand.lane)));
    let penalties =
        aside.penalties().iter().map(|penalty| Row::penalty(penalty, docket.claimed(penalty.claim).as_ref()));
    let rows: Vec<Row> = challenges.chain(convictions).chain(demands).chain(penalties).collect();
    let mut shown = 0;
    for row in rows.iter().filter(|row| of.is_none_or(|job| row.lane.is_some_and(|lane| lane.job == job))) {
        output::print(config.json, row, || row.text())?;
        shown += 1;
    }
    if shown == 0 && !config.json {
        output::line("nothing was challenged, demanded or proven so far")?;
    }
    Ok(())
}
