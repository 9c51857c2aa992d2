//! Follows a job to its end: a live view, then settlement, the trained model, and what everything came to.

mod serving;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Call, ChainError, EventAt};
use tensorlink_node::wire::gossip::Progress;
use tensorlink_types::{Address, JobId, Lane};
use tensorlink_user::{JobNote, User};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

use crate::amount::Wei;
use crate::config::Config;
use crate::node::Node;
use crate::report::Report;
use crate::{device, output};

pub use serving::serving;

/// Time between two looks at the chain, and between two plain lines.
const PERIOD: Duration = Duration::from_secs(1);
/// Longest wait for the settlement's confirmation.
const CONFIRMATION: Duration = Duration::from_secs(120);

/// Longest outage of the endpoint that is waited for.
const OUTAGE: Duration = Duration::from_secs(600);

/// What a job came to.
#[derive(Serialize)]
struct Summary<'a> {
    job: JobId,
    /// Per cent of held-out labels predicted right, if the job finished; of a text, of its characters.
    held_out_percent: Option<f64>,
    /// Their mean cross entropy in nats.
    held_out_loss: Option<f64>,
    held_out_rows: u64,
    workers_paid: usize,
    /// Wei of the job's token.
    refund_amount: Wei,
    /// Wei of SNO.
    slashed_amount: Wei,
    seconds: f64,
    steps: u32,
    bytes_moved: u64,
    /// Largest share among the lanes, as they report it.
    commitment_share: f32,
    gas: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    report: &'a Report,
}

/// The newest report of each lane.
#[derive(Default)]
struct Lanes(BTreeMap<Lane, Progress>);

impl Lanes {
    fn step(&self) -> u32 {
        self.0.values().map(|progress| progress.step).min().unwrap_or(0)
    }

    fn bytes(&self) -> u64 {
        self.0.values().map(|progress| progress.bytes_moved).sum()
    }

    fn commitment_share(&self) -> f32 {
        self.0.values().map(|progress| progress.commitment_share).fold(0.0, f32::max)
    }

    fn line(&self, report: &Report) -> String {
        let last = self.0.values().rev().find(|progress| progress.loss.is_some());
        let (loss, accuracy) = last.map_or((None, None), |progress| (progress.loss, progress.accuracy));
        let speed = self.0.values().map(|progress| progress.steps_per_second).fold(f32::INFINITY, f32::min);
        format!(
            "loss {} acc {} | {} steps/s | {} MiB moved | claims {}{} committed, {} final{}",
            loss.map_or("-".into(), |loss| format!("{loss:.4}")),
            accuracy.map_or("-".into(), |accuracy| format!("{:.1} %", accuracy * 100.0)),
            if speed.is_finite() { format!("{speed:.0}") } else { "-".into() },
            self.bytes() >> 20,
            if report.seals > 0 { format!("{} sealed, ", report.seals) } else { String::new() },
            report.claims_committed,
            report.claims_final,
            report.differences.last().map_or(String::new(), |place| format!(" | REPLICAS DIFFER at {place}"))
        )
    }
}

/// A job's balance as far as the chain is confirmed.
struct Balance {
    job: JobId,
    events: Receiver<Vec<EventAt>>,
    /// Events taken in.
    told: usize,
    report: Report,
}

impl Balance {
    fn new(job: JobId, user: &User) -> Self {
        Self { job, events: user.events(), told: 0, report: Report::default() }
    }

    /// Waits for further events and takes them in.
    async fn go_on(&mut self) -> Result<()> {
        self.events.changed().await.context("the node does not follow the chain any more; its log says why")?;
        let events = self.events.borrow_and_update();
        events.iter().skip(self.told).for_each(|at| self.report.take_in(self.job, at));
        self.told = events.len();
        Ok(())
    }

    /// The whole of it, once the settlement is confirmed.
    async fn settled(mut self) -> Result<Report> {
        let job = self.job;
        let confirmed = async {
            while self.report.refund.is_none() {
                self.go_on().await?;
            }
            Ok::<(), anyhow::Error>(())
        };
        tokio::time::timeout(CONFIRMATION, confirmed).await.with_context(|| {
            format!("the settlement of job {job} is not confirmed yet; `tensorlink job watch {job}` reports later")
        })??;
        self.report.complete(job, &self.events.borrow());
        Ok(self.report)
    }
}

/// Follows a job until it is settled, then reports.
pub async fn follow(
    config: &Config,
    node: &Node,
    user: &User,
    (job, note, report_file): (JobId, &JobNote, Option<&Path>),
    shutdown: &CancellationToken,
) -> Result<()> {
    let started = Instant::now();
    let view =
        patiently(async || node.ports.chain.job(job).await).await?.with_context(|| format!("there is no job {job}"))?;
    let mut balance = Balance::new(job, user);
    let lanes = tokio::select! {
        () = shutdown.cancelled() => bail!("interrupted; the job goes on: `tensorlink job watch {job}` takes it up again"),
        watched = watch(config, (node, user), &view, &mut balance) => watched?,
    };
    let seconds = started.elapsed().as_secs_f64();
    collect(node, &view).await;
    let mut report = balance.settled().await?;

    let finished = stages_final(node, &view).await?;
    let (mut accuracy, mut loss, mut rows) = (None, None, 0);
    if finished {
        let stages = user.trained(&view, note).await?;
        let engine = device::open(Some("cpu"))?;
        let metrics = user.test(&engine, &stages, note).await?;
        (accuracy, loss, rows) = (Some(metrics.accuracy()), Some(metrics.loss()), metrics.rows);
    }
    let gas = gas(node, &mut report).await?;
    let summary = Summary {
        job,
        held_out_percent: accuracy.map(|share| share * 100.0),
        held_out_loss: loss,
        held_out_rows: rows,
        workers_paid: report.paid.len(),
        refund_amount: report.refund.unwrap_or_default(),
        slashed_amount: report.slashed(),
        seconds,
        steps: lanes.step(),
        bytes_moved: lanes.bytes(),
        commitment_share: lanes.commitment_share(),
        gas,
        report: &report,
    };
    write(report_file, &summary)?;
    let token = token(&view);
    output::print(config.json, &summary, || show(&summary, token))
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

/// The live view, until the job's settlement is confirmed.
async fn watch(config: &Config, (node, user): (&Node, &User), view: &JobView, balance: &mut Balance) -> Result<Lanes> {
    let job = view.id;
    let steps = view.intervals * view.steps_per_interval;
    let bar = (!config.json && std::io::stderr().is_terminal()).then(|| {
        let bar = ProgressBar::new(u64::from(steps));
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        bar
    });
    let (mut progress, mut lanes) = (user.progress(), Lanes::default());
    let mut shown = (Instant::now(), String::new());
    let mut ticks = tokio::time::interval(PERIOD);
    while balance.report.refund.is_none() {
        tokio::select! {
            update = progress.recv() => match update {
                Ok(update) if update.job() == job => {
                    lanes.0.insert(update.lane, update);
                }
                Ok(_) | Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => bail!("the node is shutting down"),
            },
            told = balance.go_on() => told?,
            _ = ticks.tick() => wind_up(node, user, view).await?,
        }
        let line = lanes.line(&balance.report);
        match &bar {
            Some(bar) => {
                bar.set_position(u64::from(lanes.step()));
                bar.set_message(line);
            }
            None if !config.json && shown.0.elapsed() >= PERIOD && shown.1 != line => {
                eprintln!("step {}/{steps} {line}", lanes.step());
                shown = (Instant::now(), line);
            }
            None => {}
        }
    }
    if let Some(bar) = bar {
        bar.finish();
    }
    Ok(lanes)
}

/// Moves a job towards its settlement, and fetches what that brings. Not only once: until it is confirmed a reorganisation may undo it.
async fn wind_up(node: &Node, user: &User, view: &JobView) -> Result<(), ChainError> {
    match user.wind_up(view.id).await {
        Ok(true) => collect(node, view).await,
        Ok(false) => {}
        // The endpoint is down for a while, or a transaction is late: what came of it the next look tells.
        Err(error @ (ChainError::Unavailable(_) | ChainError::Pending(_))) => {
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

/// Whether each stage was computed to the end by one of its replicas at least.
async fn stages_final(node: &Node, view: &JobView) -> Result<bool> {
    for stage in 0..view.stages {
        let mut done = false;
        for replica in 0..view.replicas {
            let lane = Lane { job: view.id, stage, replica };
            let lane = patiently(async || node.ports.chain.lane(lane).await).await?;
            done |= lane.finalized >= view.intervals;
        }
        if !done {
            return Ok(false);
        }
    }
    Ok(true)
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
            eprintln!("not collected ({error}); `tensorlink withdraw` does it later");
        }
    }
}

fn show(summary: &Summary<'_>, token: &str) -> String {
    let report = summary.report;
    let mut lines = vec![format!("job {} is settled after {:.1} s", summary.job, summary.seconds)];
    match summary.held_out_percent {
        Some(accuracy) => {
            lines.push(format!("accuracy     {accuracy:.2} % of {} labels that no worker saw", summary.held_out_rows));
            lines.push(format!("loss         {:.4} nats a label", summary.held_out_loss.unwrap_or_default()));
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
    lines.extend(money(report, &summary.gas, token));
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
