//! `tensorlink job resume`: the rest of a training that ended early, by other workers.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;
use tensorlink_node::footprint::Footprint;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::price::price_per_interval;
use tensorlink_types::JobId;
use tensorlink_types::abi::JobKind;
use tensorlink_user::{JobNote, ResultError, ResumeError};
use tokio_util::sync::CancellationToken;

use crate::amount::Wei;
use crate::commands::follow::FollowArgs;
use crate::commands::hiring::{self, Hiring, Work};
use crate::commands::post::launch;
use crate::config::Config;
use crate::live::say;
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
    pub hire: hiring::HireArgs,
    #[command(flatten)]
    pub follow: FollowArgs,
}

/// What is left, and what it will cost.
#[derive(Serialize)]
struct Quote {
    /// The job that is continued.
    continues: JobId,
    /// Steps done before.
    steps_done: u32,
    /// Steps left.
    steps: u32,
    /// Claims of each lane.
    intervals: u32,
    /// `SNO` or `ETH`, which the job pays in.
    token: &'static str,
    /// Escrow, in wei of the token.
    deposit: Wei,
    /// By the workers' adverts; binding prices come with their offers.
    estimate: Wei,
}

/// Posts the rest of a job, hires, starts it.
pub async fn run(config: &Config, args: &ResumeArgs, shutdown: CancellationToken) -> Result<()> {
    let (_, chain) = node::chain(config, &shutdown).await?;
    let former = super::find_job(chain.as_ref(), JobId(args.job)).await?;
    check(&former, args)?;
    drop(chain);

    let mut hiring = Hiring::look(config, &args.hire, &shutdown).await?;
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
    let intervals = former.intervals.saturating_sub(from);
    ensure!(intervals > 0, "all {finished} intervals of job {} are done: nothing is left to resume", former.id);
    say!("fetching the states after {from} of {} intervals ...", former.intervals);
    let resumption = hiring.user.resume(&former, &note, from).await.map_err(|error| explained(error, from))?;

    let per_interval = former.steps_per_interval;
    let needs = resumption.programs.iter().map(|program| Footprint::training(program, per_interval).alone());
    hiring.fit_programs(&shutdown, needs.collect()).await?;
    let prices = hiring.prices(|stage, per_gmac| {
        resumption.programs.get(stage).and_then(|program| price_per_interval(program, per_interval, per_gmac))
    })?;
    hiring.afford(&prices, intervals, 1)?;
    let first_step = former.lineage.first_step + from * per_interval;
    let quote = Quote {
        continues: former.id,
        steps_done: first_step,
        steps: intervals * per_interval,
        intervals,
        token: hiring.token_name(),
        deposit: Wei(hiring.deposit),
        estimate: Wei(prices
            .iter()
            .map(|price| u128::from(intervals).saturating_mul(*price))
            .sum::<u128>()
            .try_into()?),
    };
    output::print(config.json, &quote, || show(&quote))?;
    if args.hire.dry_run {
        return Ok(());
    }
    let published = resumption.published;
    let work = Work::training(&published, (intervals, per_interval), Some((former.id, first_step)));
    let follow = args.follow.follow().map(|follow| Follow { rules: follow.rules.within(resumption.bounds), ..follow });
    launch(config, hiring, (work, &published.note), &prices, follow, &shutdown).await
}

/// Whether there is something to go on with.
fn check(former: &JobView, args: &ResumeArgs) -> Result<()> {
    let job = former.id;
    ensure!(former.kind == JobKind::Training, "job {job} serves a model: only training is resumed");
    ensure!(former.started_at > 0, "job {job} never started: post it anew");
    ensure!(
        matches!(former.state, JobState::Closing | JobState::Settled),
        "job {job} still runs: `tensorlink job watch {job}` follows it, `tensorlink job cancel {job}` ends it"
    );
    ensure!(
        args.hire.stages.said() == Some(former.stages),
        "job {job} was cut into {0} stages, and so is what is left of it: give --stages {0}",
        former.stages
    );
    Ok(())
}

/// What can be done where nobody gives a state.
fn explained(error: ResumeError, from: u32) -> anyhow::Error {
    let withheld = from > 0 && matches!(error, ResumeError::Result(ResultError::Withheld { .. }));
    let error = anyhow::Error::from(error);
    if !withheld {
        return error;
    }
    error.context(format!(
        "the training cannot go on after {from} intervals: try again when a worker that has the states is back, or give \
         --from and a smaller number; with --from 0 it begins anew"
    ))
}

fn show(quote: &Quote) -> String {
    output::table(&[
        ("continues", format!("job {} after {} steps", quote.continues, quote.steps_done)),
        ("steps", format!("{} in {} intervals", quote.steps, quote.intervals)),
        (
            "price",
            format!(
                "about {} {} of {} {} in escrow; the rest comes back",
                quote.estimate, quote.token, quote.deposit, quote.token
            ),
        ),
    ])
}
