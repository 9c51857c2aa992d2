//! Follows a job to its end: a live view, then settlement, the trained model, and what everything came to.

mod balance;
mod ending;
mod evaluation;
mod lanes;
mod model;
mod serving;
mod silence;
mod stops;
mod told;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Call, ChainError};
use tensorlink_training::Metrics;
use tensorlink_types::{Address, B256, JobId};
use tensorlink_user::{JobNote, User};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::amount::Wei;
use crate::config::Config;
use crate::live::{self, say};
use crate::node::Node;
use crate::output;
use crate::report::Report;

use self::balance::Balance;
use self::ending::{Ending, heard};
use self::evaluation::{Evaluation, Tested};
use self::lanes::{Lanes, News};
use self::silence::Silence;
use self::stops::Judge;

pub use model::{Learned, exportable};
pub use serving::serving;
pub use stops::{Early, Rules, Stop};

/// Time between two looks at the chain, and between two plain lines.
const PERIOD: Duration = Duration::from_secs(1);
/// Longest outage of the endpoint that is waited for.
const OUTAGE: Duration = Duration::from_secs(600);

/// How a training job is followed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Follow<'a> {
    /// File for what the job came to, as JSON.
    pub report: Option<&'a Path>,
    /// New folder for the model.
    pub out: Option<&'a Path>,
    /// What ends the job before its last interval, unless it was followed before: then what ended it then.
    pub rules: Rules,
}

/// What a job came to.
#[derive(Serialize)]
struct Summary<'a> {
    job: JobId,
    /// Why it was stopped early, if it was.
    stopped: Option<Stop>,
    /// Intervals that are final in every stage; the model is what they have after the last of them.
    intervals: u32,
    /// The folder with the model.
    out: Option<&'a Path>,
    /// Per cent of held-out labels predicted right, if the model was taken; of a text, of its characters.
    held_out_percent: Option<f64>,
    /// Their mean cross entropy in nats.
    held_out_loss: Option<f64>,
    held_out_rows: u64,
    /// What tests on the way came to.
    evaluations: Vec<Tested>,
    /// Largest share of elements of a weight that were too large for the types of its operands, after the last step
    /// that was told of.
    saturation: Option<f32>,
    /// State root of each stage after the last of them, if the model was taken.
    final_states: Vec<B256>,
    workers_paid: usize,
    /// Wei of SNO.
    slashed: Wei,
    seconds: f64,
    steps: u32,
    bytes_moved: u64,
    /// Largest share among the lanes, as they report it.
    commitment_share: f32,
    gas: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    report: &'a Report,
}

/// Follows a job until it is settled, then reports.
pub async fn follow(
    config: &Config,
    node: &Node,
    user: &User,
    (job, note): (JobId, &JobNote),
    follow: &Follow<'_>,
    shutdown: &CancellationToken,
) -> Result<()> {
    let started = Instant::now();
    let view =
        patiently(async || node.ports.chain.job(job).await).await?.with_context(|| format!("there is no job {job}"))?;
    if let Some(out) = follow.out {
        exportable(&note.name, (note.architecture.as_ref(), note.base.as_ref()), out)?;
    }
    let mut balance = Balance::new(job, user);
    let (lanes, evaluations, stopped) = tokio::select! {
        () = shutdown.cancelled() => {
            let out = follow.out.map_or(String::new(), |out| format!(" --out {}", out.display()));
            bail!("interrupted; the job goes on, to its last step: `tensorlink job watch {job}{out}` takes it up again")
        }
        watched = watch(config, (node, user), (&view, note, follow.rules), &mut balance) => watched?,
    };
    let seconds = started.elapsed().as_secs_f64();
    collect(node, &view).await;
    let mut report = balance.settled().await?;

    let intervals = patiently(async || user.final_everywhere(&view).await).await?;
    let wanted = intervals >= view.intervals || stopped.is_some() || follow.out.is_some();
    let taken = if wanted { Some(model::take(user, (&view, note), intervals, follow.out).await) } else { None };
    // What was paid is told in any case.
    let (taken, failed) = match taken.transpose() {
        Ok(taken) => (taken, None),
        Err(error) => (None, Some(error)),
    };
    let (metrics, final_states) = taken.unzip();
    let gas = gas(node, &mut report).await?;
    let summary = Summary {
        job,
        stopped,
        intervals,
        out: follow.out.filter(|_| metrics.is_some()),
        held_out_percent: metrics.as_ref().map(|metrics| metrics.accuracy() * 100.0),
        held_out_loss: metrics.as_ref().map(Metrics::loss),
        held_out_rows: metrics.as_ref().map_or(0, |metrics| metrics.rows),
        evaluations,
        saturation: lanes.saturation(),
        final_states: final_states.unwrap_or_default(),
        workers_paid: report.paid.len(),
        slashed: report.slashed(),
        seconds,
        steps: lanes.step(),
        bytes_moved: lanes.bytes(),
        commitment_share: lanes.commitment_share(),
        gas,
        report: &report,
    };
    write(follow.report, &summary)?;
    output::print(config.json, &summary, || show(&summary, &view, note.label()))?;
    failed.map_or(Ok(()), Err)
}

/// Gas of one transaction of each kind; also completes the convictions with theirs.
async fn gas(node: &Node, report: &mut Report) -> Result<BTreeMap<&'static str, u64>> {
    let mut gas = BTreeMap::new();
    for (what, transaction) in &report.samples {
        if let Some(mined) = patiently(async || node.ports.chain.mined(*transaction).await).await? {
            gas.insert(*what, mined.gas);
        }
    }
    for conviction in &mut report.convictions {
        let mined = patiently(async || node.ports.chain.mined(conviction.transaction).await).await?;
        conviction.gas = mined.map(|mined| mined.gas);
    }
    Ok(gas)
}

fn write(file: Option<&Path>, summary: &impl Serialize) -> Result<()> {
    let Some(path) = file else { return Ok(()) };
    std::fs::write(path, serde_json::to_vec(summary)?).with_context(|| format!("cannot write {}", path.display()))
}

fn token(view: &JobView) -> &'static str {
    if view.token == Address::ZERO { "ETH" } else { "SNO" }
}

/// The live view, until the job's settlement is confirmed; tests on the way; and why the job was stopped early, if
/// it was.
async fn watch(
    config: &Config,
    (node, user): (&Node, &User),
    (view, note, rules): (&JobView, &JobNote, Rules),
    balance: &mut Balance,
) -> Result<(Lanes, Vec<Tested>, Option<Stop>)> {
    let job = view.id;
    let steps = view.intervals * view.steps_per_interval;
    let bar = (!config.json && std::io::stderr().is_terminal()).then(|| {
        let bar = ProgressBar::new(u64::from(steps));
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        (live::View::show(bar.clone()), bar)
    });
    let (mut progress, mut lanes) = (user.progress(), Lanes::default());
    let parameters = patiently(async || node.ports.chain.parameters().await).await?;
    let mut silence = Silence::new(job, user, parameters.seal_window);
    let mut shown = None;
    let journal = &node.ports.journal;
    let mut judge = Judge::of(journal, view, rules)?;
    let mut ending = Ending::of(&judge, job);
    let (every, tested) = judge.tests();
    let mut evaluation = Evaluation::new(user, (view, note), every, tested);
    let mut ticks = tokio::time::interval(PERIOD);
    while balance.report.refund.is_none() {
        tokio::select! {
            update = progress.recv() => match update {
                Ok(update) if update.job() == job => {
                    if heard(&mut judge, view, &update) {
                        judge.keep(journal, job);
                        ending = Ending::of(&judge, job);
                    }
                    lanes.hear(update);
                }
                Ok(_) | Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => bail!("the node is shutting down"),
            },
            told = balance.go_on() => told?,
            (intervals, tested) = evaluation.next() => match tested {
                Ok(tested) => {
                    judge.tested(intervals, tested.loss);
                    judge.keep(journal, job);
                    ending = ending.or_else(|| Ending::of(&judge, job));
                }
                Err(error) => tracing::warn!(%job, intervals, %error, "not tested on held-out rows"),
            },
            _ = ticks.tick() => {
                if let Some(ending) = &ending {
                    ending.go_on(node, view, &balance.report).await?;
                }
                wind_up(node, user, view).await?;
                silence.look(view, user, config.json)?;
                if ending.is_none() {
                    evaluation.begin(balance.report.claimed_everywhere(view.stages));
                }
            }
        }
        let silent = silence.line();
        let told = (&balance.report, evaluation.done.last(), silent.as_deref());
        let line = lanes.line(view, (note.labels_per_step, note.label()), told);
        match &bar {
            Some((_, bar)) => {
                bar.set_position(u64::from(lanes.step()));
                bar.set_message(line);
            }
            None if !config.json => {
                let now = lanes.news(told);
                if shown.as_ref().is_none_or(|(at, last): &(Instant, News)| at.elapsed() >= PERIOD && *last != now) {
                    say!("step {}/{steps} {line}", lanes.step());
                    shown = Some((Instant::now(), now));
                }
            }
            None => {}
        }
    }
    if let Some((view, bar)) = bar {
        bar.finish();
        drop(view);
    }
    Ok((lanes, evaluation.done, ending.map(|ending| ending.why)))
}

/// Moves a job towards its settlement, and fetches what that brings. Not only once: until it is confirmed a
/// reorganisation may undo it.
async fn wind_up(node: &Node, user: &User, view: &JobView) -> Result<(), ChainError> {
    match user.wind_up(view.id).await {
        Ok(true) => collect(node, view).await,
        Ok(false) => {}
        // The endpoint is down for a while, a transaction is late, or the day's gas is spent: the next look tells more.
        Err(error @ (ChainError::Unavailable(_) | ChainError::Pending(_) | ChainError::OverBudget { .. })) => {
            tracing::warn!(job = %view.id, %error, "the job waits for the chain");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Asks the chain until it answers, through an outage of its endpoint.
async fn patiently<T>(mut ask: impl AsyncFnMut() -> Result<T, ChainError>) -> Result<T, ChainError> {
    let asked = Instant::now();
    loop {
        match ask().await {
            Err(error @ ChainError::Unavailable(_)) if asked.elapsed() < OUTAGE => {
                tracing::warn!(%error, "waiting for the chain");
                tokio::time::sleep(PERIOD).await;
            }
            answer => return answer,
        }
    }
}

/// Fetches what came back.
async fn collect(node: &Node, view: &JobView) {
    let own = node.ports.identity.address();
    let tokens = [view.token, node.ports.chain.deployment().sno];
    for token in tokens.iter().take(if tokens[0] == tokens[1] { 1 } else { 2 }) {
        let result = async {
            if !node.ports.chain.credit(own, *token).await?.is_zero() {
                node.ports.chain.send(Call::Collect { token: *token }).await?;
            }
            Ok::<(), ChainError>(())
        };
        if let Err(error) = result.await {
            say!("not collected ({error}); `tensorlink withdraw` does it later");
        }
    }
}

fn show(summary: &Summary<'_>, view: &JobView, label: &str) -> String {
    let report = summary.report;
    let mut lines = vec![format!("job {} is settled after {:.1} s", summary.job, summary.seconds)];
    lines.extend(summary.stopped.map(|why| format!("stopped      {why}")));
    if summary.intervals < view.intervals && summary.held_out_percent.is_some() {
        lines.push(format!("model        after {} of {} intervals", summary.intervals, view.intervals));
    }
    lines.extend(summary.out.map(|out| format!("written      {}", out.display())));
    lines.extend(summary.evaluations.iter().map(|tested| {
        format!("held out     {:.4} nats a {label}, {:.2} %, after {} steps", tested.loss, tested.percent, tested.steps)
    }));
    match summary.held_out_percent {
        Some(accuracy) => {
            lines
                .push(format!("accuracy     {accuracy:.2} % of {} {label}s that no worker saw", summary.held_out_rows));
            lines.push(format!("loss         {:.4} nats a {label}", summary.held_out_loss.unwrap_or_default()));
        }
        None => lines.push("accuracy     none: the job did not finish".into()),
    }
    lines.push(format!(
        "work         {} steps, {} MiB moved, {:.1} % of the time for commitments and signatures",
        summary.steps,
        summary.bytes_moved >> 20,
        summary.commitment_share * 100.0
    ));
    lines.push(format!("claims       {} committed, {} final", report.claims_committed, report.claims_final));
    lines.extend(
        report.differences.iter().map(|place| format!("differ       the replicas of {place}: not all are right")),
    );
    lines.extend(money(report, &summary.gas, token(view)));
    lines.join("\n")
}

/// What was paid, returned, burnt as gas, and slashed.
fn money(report: &Report, gas: &BTreeMap<&'static str, u64>, token: &str) -> Vec<String> {
    let paid = report.paid.iter().map(|(worker, amount)| format!("paid         {amount} {token} to {worker}"));
    let mut lines: Vec<String> = paid.collect();
    lines.push(format!("returned     {} {token} to the user", report.refund.unwrap_or_default()));
    let gas: Vec<String> = gas.iter().map(|(what, gas)| format!("{what} {gas}")).collect();
    lines.push(format!("gas          {}", gas.join(", ")));
    lines.extend(report.convictions.iter().map(crate::report::Conviction::show));
    lines
}
