//! `tensorlink dispute list|show|explain`: what was challenged, and what was proven. Reads the chain only, and needs no key.

use anyhow::{Result, bail};
use serde::Serialize;
use tensorlink_types::{JobId, Lane};
use tokio_util::sync::CancellationToken;

use crate::args::{DisputeCommand, WhichDispute};
use crate::config::Config;
use crate::dispute::look::{self, Which};
use crate::dispute::words::list::Row;
use crate::dispute::{Dispute, Docket, files, names, words};
use crate::{node, output};

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
                    Err(error) => dispute.nameless = Some(format!("{error:#}")),
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
    let rows: Vec<Row> = challenges.chain(convictions).collect();
    let mut shown = 0;
    for row in rows.iter().filter(|row| of.is_none_or(|job| row.lane.is_some_and(|lane| lane.job == job))) {
        output::print(config.json, row, || row.text())?;
        shown += 1;
    }
    if shown == 0 && !config.json {
        println!("nothing was challenged or proven so far");
    }
    Ok(())
}
