//! `tensorlink job resume`: the rest of a training that ended early, by other workers.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use anyhow::{Result, ensure};
use clap::Args;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_types::JobId;
use tensorlink_types::abi::JobKind;
use tensorlink_user::{Claims, JobNote};
use tokio_util::sync::CancellationToken;

use crate::commands::failover;
use crate::commands::follow::FollowArgs;
use crate::commands::hiring::{self, HireArgs, Hiring, Stages};
use crate::commands::rest::{Rest, fetch, show, uncut};
use crate::config::Config;
use crate::watch::{Follow, exportable};
use crate::{node, output};

#[derive(Args, Debug)]
pub struct ResumeArgs {
    /// The job that ended.
    pub job: u64,
    /// Go on after so many of its intervals [default: all that are final in every stage].
    #[arg(long, value_name = "INTERVALS")]
    pub from: Option<u32>,
    #[command(flatten)]
    pub hire: HireArgs,
    #[command(flatten)]
    pub follow: FollowArgs,
}

/// Posts the rest of a job, hires, starts it.
pub async fn run(config: &Config, args: &ResumeArgs, shutdown: CancellationToken) -> Result<()> {
    let (_, chain) = node::chain(config, &shutdown).await?;
    let former = super::find_job(chain.as_ref(), JobId(args.job)).await?;
    check(&former)?;
    drop(chain);

    let stages = args.hire.stages.unwrap_or(Stages::Exactly(former.stages));
    let hire = HireArgs { stages: Some(stages), ..args.hire.clone() };
    let mut hiring = Hiring::look(config, &hire, &shutdown).await?;
    let note: JobNote = hiring::read_note(&hiring.node, former.id)?;
    if let Some(out) = &args.follow.out {
        exportable(&note.name, (note.architecture.as_ref(), note.base.as_ref()), out)?;
    }
    let finished = hiring.user.final_everywhere(&former).await?;
    let from = args.from.unwrap_or(finished);
    ensure!(
        from <= finished,
        "only {finished} intervals of job {} are final in every stage: --from can be at most {finished}",
        former.id
    );
    ensure!(
        from < former.intervals,
        "all {finished} intervals of job {} are done: nothing is left to resume",
        former.id
    );
    let before = failover::inherited(&hiring, former.id).await?;
    let deposit = hiring.deposit;
    let resumption = fetch(&hiring.user, (&former, &note), (from, Claims::Final)).await?;
    let uncut = uncut(&hiring.user, &resumption).await;
    let rest = Rest::hire(&mut hiring, (&former, from), (resumption, uncut), deposit, &shutdown).await?;
    output::print(config.json, &rest.quote, || show(&rest.quote))?;
    if hire.dry_run {
        return Ok(());
    }
    let follow = args.follow.follow().map(|follow| Follow { rules: follow.rules.within(rest.bounds), ..follow });
    failover::launch(config, hiring, (rest.work, &rest.note), &rest.prices, (follow, before), &shutdown).await
}

/// Whether there is something to go on with.
fn check(former: &JobView) -> Result<()> {
    let job = former.id;
    ensure!(former.kind == JobKind::Training, "job {job} serves a model: only training is resumed");
    ensure!(former.started_at > 0, "job {job} never started: post it anew");
    ensure!(
        matches!(former.state, JobState::Closing | JobState::Settled),
        "job {job} still runs: `tensorlink job watch {job}` follows it, `tensorlink job cancel {job}` ends it"
    );
    Ok(())
}
