//! `tensorlink job watch|status|list|cancel`.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Subcommand;
use serde::Serialize;
use tensorlink_model::Setting;
use tensorlink_node::ports::chain::{JobState, JobView, LaneView};
use tensorlink_node::ports::{Call, Chain};
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, B256, JobId, Lane};
use tensorlink_user::User;
use tokio_util::sync::CancellationToken;

use crate::advice;
use crate::amount::Wei;
use crate::commands::serve_by_workers::Record;
use crate::commands::{failover, find_job, hiring, post, post_serving, resume};
use crate::config::Config;
use crate::node::{self, Node};
use crate::signs::{Due, Duty, Sign, look};
use crate::tiers::Tiers;
use crate::watch::{Follow, Rules};
use crate::{origin, output, tiers, watch, when};

#[derive(Subcommand, Debug)]
pub enum JobCommand {
    /// Cut a model in stages, find workers, post the job with its escrow, start it.
    #[command(after_help = "\
Example:
  tensorlink job post --model examples/digits.json --data examples/digits.csv.gz --stages 3 --deposit 50 --watch")]
    Post(Box<post::PostArgs>),
    /// Put a pretrained transformer into integers, find workers for its stages, post a serving job, start it.
    #[command(after_help = "\
Example:
  tensorlink job serve ./all-MiniLM-L6-v2 --stages 2 --deposit 50
  tensorlink serve ./all-MiniLM-L6-v2 --job 1")]
    Serve(Box<post_serving::JobServeArgs>),
    /// Go on with a training job that ended before it was done, on workers that may be others: what comes out is the
    /// same, bit by bit, as had it never stopped.
    #[command(after_help = "\
Example:
  tensorlink job resume 1 --deposit 50 --watch")]
    Resume(Box<resume::ResumeArgs>),
    /// Follow a job until it is settled; settles it, fetches and tests the model.
    Watch {
        /// The job's number.
        job: u64,
        /// Also write what the job came to into this file, as JSON.
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
        /// New folder for a trained language model, as Hugging Face's loaders, `model sample` and `serve` read it. Of a
        /// job that was stopped, what it had learned by the last interval that is final in every stage.
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        /// Of a job that was posted to be followed: seconds of silence after which a worker is given up, and the
        /// training goes on without it, in another job that this command posts and pays [default: as was said then].
        /// 0: never.
        #[arg(long, value_name = "SECONDS")]
        failover: Option<u64>,
    },
    /// Show a job.
    Status {
        /// The job's number.
        job: u64,
    },
    /// Show all jobs.
    List {
        /// Only those of the configured key.
        #[arg(long)]
        mine: bool,
    },
    /// Stop a job. What is earned is paid, the rest comes back.
    Cancel {
        /// The job's number.
        job: u64,
    },
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    job: JobView,
    /// Of a job that serves, if it was posted from this data directory: in how many bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    setting: Option<Setting>,
    /// The job that was posted to go on with it, if that was from this data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<JobId>,
    lanes: Vec<ShownLane>,
}

impl Shown {
    /// Takes in what was noted of the job in this data directory.
    fn take_notes(&mut self, config: &Config) -> Result<()> {
        let (Some(journal), job) = (hiring::journal(config)?, self.job.id) else { return Ok(()) };
        let tiers = Tiers::read(&journal, job)?;
        for lane in &mut self.lanes {
            lane.tier = tiers.get(lane.worker).map(str::to_owned);
        }
        if self.job.kind == JobKind::Serving {
            self.setting = hiring::setting(&journal, job)?;
            self.next = Record::next(&journal, job)?;
        } else {
            self.next = failover::next(&journal, job)?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct ShownLane {
    stage: u16,
    replica: u16,
    worker: Address,
    /// As it said when it was hired, if that was from this data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<String>,
    /// Of an interval, or of a token.
    price_per_interval: Wei,
    #[serde(flatten)]
    got: Got,
    /// When the chain told of it last; none of a settled job.
    last_seen: Option<Sign>,
    /// What it must do next, by when, and what happens if it does not.
    due: Option<Due>,
}

/// How far a lane has come.
#[derive(Serialize)]
#[serde(untagged)]
enum Got {
    /// Of a training job.
    Claims(LaneView),
    /// Of a serving job: what it redeemed last, and tokens since the job began.
    Vouchers { epoch: u32, tokens_paid: u32 },
}

#[derive(Serialize)]
struct Done {
    job: JobId,
    transaction: B256,
    gas: u64,
}

/// Runs a job command.
pub async fn run(config: &Config, command: JobCommand, shutdown: CancellationToken) -> Result<()> {
    match command {
        JobCommand::Post(args) => post::run(config, &args, shutdown).await,
        JobCommand::Serve(args) => post_serving::run(config, &args, shutdown).await,
        JobCommand::Resume(args) => resume::run(config, &args, shutdown).await,
        JobCommand::Watch { job, report, out, failover: said } => {
            let node = Node::start_to_pay(config, hiring::DISK, &shutdown).await?;
            let view = find_job(node.ports.chain.as_ref(), JobId(job)).await?;
            let (report, out) = (report.as_deref(), out.as_deref());
            match view.kind {
                JobKind::Training => {
                    let follow = Follow { report, out, rules: Rules::default(), failover: None };
                    Box::pin(failover::take_up(config, node, view.id, (follow, said), &shutdown)).await
                }
                JobKind::Serving if out.is_some() => bail!("job {job} trains nothing: leave out --out"),
                JobKind::Serving => {
                    let user = User::start(node.ports.clone(), shutdown.clone()).await?;
                    watch::serving(config, &node, &user, (&view, report), &shutdown).await?;
                    node.net.shutdown().await;
                    Ok(())
                }
            }
        }
        JobCommand::Status { job } => {
            let (_, chain) = node::look(config, &shutdown).await?;
            let mut shown = look_up(chain.as_ref(), JobId(job)).await?;
            // What was noted of a job of this number on another chain says nothing.
            if origin::is_of(config, &chain).await?
                && let Err(error) = shown.take_notes(config)
            {
                // What the chain says is shown all the same.
                tracing::warn!("what was noted of job {job} cannot be read: {}", advice::words(&error));
            }
            let now = chain.head().await?.timestamp;
            output::print(config.json, &shown, || show(&shown, now))
        }
        JobCommand::List { mine } => {
            // Who only looks needs no key.
            let open = if mine { node::chain(config, &shutdown).await } else { node::reader(config, &shutdown).await };
            let (identity, chain) = open?;
            for job in 1..=chain.job_count().await? {
                let Some(view) = chain.job(JobId(job)).await? else { continue };
                if !mine || view.user == identity.address() {
                    output::print(config.json, &view, || line(&view))?;
                }
            }
            Ok(())
        }
        JobCommand::Cancel { job } => {
            let (_, chain) = node::chain(config, &shutdown).await?;
            let view = find_job(chain.as_ref(), JobId(job)).await?;
            if matches!(view.state, JobState::Closing | JobState::Settled) {
                bail!("job {job} takes no more work already: `tensorlink job status {job}` shows it");
            }
            let receipt = chain.send(Call::Cancel { job: JobId(job) }).await?;
            let done = Done { job: JobId(job), transaction: receipt.transaction, gas: receipt.gas };
            output::print(config.json, &done, || {
                format!("job {job} takes no more work (gas {}); `tensorlink job watch {job}` settles it", done.gas)
            })
        }
    }
}

async fn look_up(chain: &dyn Chain, job: JobId) -> Result<Shown> {
    let view = find_job(chain, job).await?;
    let mut lanes = Vec::new();
    let signs = look::signs(chain, &view).await?;
    let seal_window = chain.parameters().await?.seal_window;
    if view.state != JobState::Posted {
        for replica in 0..view.replicas {
            for stage in 0..view.stages {
                let lane = Lane { job, stage, replica };
                let (worker, price) = chain.assignment(lane).await?;
                let got = match view.kind {
                    JobKind::Training => Got::Claims(chain.lane(lane).await?),
                    JobKind::Serving => {
                        let redeemed = chain.redeemed(lane).await?;
                        Got::Vouchers { epoch: redeemed.epoch, tokens_paid: redeemed.tokens }
                    }
                };
                let (last_seen, due) = (signs.last(lane), signs.due(&view, lane, seal_window));
                let price_per_interval = price.into();
                let tier = None;
                lanes.push(ShownLane { stage, replica, worker, tier, price_per_interval, got, last_seen, due });
            }
        }
    }
    Ok(Shown { job: view, setting: None, next: None, lanes })
}

fn line(view: &JobView) -> String {
    let work = match view.kind {
        JobKind::Training => format!("{} intervals of {} steps", view.intervals, view.steps_per_interval),
        JobKind::Serving => format!("serves {} tokens in texts of up to {}", view.intervals, view.steps_per_interval),
    };
    format!(
        "job {:<4} {:<9} {} stages x {}, {work}, {} in escrow, user {}",
        view.id,
        format!("{:?}", view.state).to_lowercase(),
        view.stages,
        view.replicas,
        Wei::from(view.escrow),
        view.user
    )
}

/// What its clocks say, where they still matter.
fn times(view: &JobView, now: u64) -> Option<String> {
    match view.state {
        JobState::Posted => Some(format!("  offers are taken until {}", when::due(view.accept_by, now))),
        JobState::Settled => None,
        _ if view.started_at == 0 => None,
        _ => Some(format!(
            "  began {}; ends by {}; a claim can be challenged for {}",
            when::due(view.started_at, now),
            when::due(view.deadline, now),
            when::duration(view.challenge_window)
        )),
    }
}

fn show(shown: &Shown, now: u64) -> String {
    let mut lines = vec![line(&shown.job)];
    lines.extend(times(&shown.job, now));
    lines.extend(shown.setting.map(|setting| format!("  computed in the setting {setting}")));
    lines.extend(shown.next.map(|next| format!("  job {next} goes on with it")));
    for lane in &shown.lanes {
        let got = match &lane.got {
            Got::Claims(claims) => {
                let void = claims.void_from.map_or(String::new(), |from| format!(", void from interval {from}"));
                let (done, all) = (claims.finalized, shown.job.intervals);
                format!("{done} of {all} intervals final at {} each{void}", lane.price_per_interval)
            }
            Got::Vouchers { epoch, tokens_paid } => {
                let all = shown.job.intervals;
                format!(
                    "{tokens_paid} of {all} tokens paid at {} each, epoch {epoch} redeemed",
                    lane.price_per_interval
                )
            }
        };
        let worker = tiers::words(lane.worker, lane.tier.as_deref());
        lines.push(format!("  stage {} replica {}: worker {worker}, {got}", lane.stage, lane.replica));
        let seen = lane.last_seen.map(|sign| format!("last seen on chain {}", sign.words(now)));
        let due = lane.due.as_ref().map(|due| due.words(now));
        let said: Vec<String> = seen.into_iter().chain(due).collect();
        if !said.is_empty() {
            lines.push(format!("    {}", said.join("; ")));
        }
    }
    // Once for all lanes of which the same is expected.
    let then: BTreeSet<(Duty, &str)> =
        shown.lanes.iter().filter_map(|lane| lane.due.as_ref()).map(|due| (due.what, due.then.as_str())).collect();
    lines.extend(then.iter().map(|(duty, then)| format!("  who does not {} in time: {then}", duty.words())));
    lines.join("\n")
}
