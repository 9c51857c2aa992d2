//! What a job came to, for programs and for people.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use tensorlink_node::ports::chain::JobView;
use tensorlink_types::{Address, B256, JobId};

use super::evaluation::Tested;
use super::losses::Loss;
use super::stops::Stop;
use super::token;
use crate::amount::Wei;
use crate::report::{Conviction, Report};
use crate::tiers::Tiers;

/// What a job came to.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    pub(super) job: JobId,
    /// Why it was stopped early, if it was.
    pub(super) stopped: Option<Stop>,
    /// Intervals that are final in every stage; the model is what they have after the last of them.
    pub(super) intervals: u32,
    /// The folder with the model.
    pub(super) out: Option<&'a Path>,
    /// Per cent of held-out labels predicted right, if the model was taken; of a text, of its characters.
    pub(super) held_out_percent: Option<f64>,
    /// Their mean cross entropy in nats.
    pub(super) held_out_loss: Option<f64>,
    pub(super) held_out_rows: u64,
    /// What tests on the way came to.
    pub(super) evaluations: Vec<Tested>,
    /// Largest share of elements of a weight that were too large for the types of its operands, after the last step
    /// that was told of.
    pub(super) saturation: Option<f32>,
    /// State root of each stage after the last of them, if the model was taken.
    pub(super) final_states: Vec<B256>,
    pub(super) workers_paid: usize,
    /// Wei of SNO.
    pub(super) slashed: Wei,
    pub(super) seconds: f64,
    pub(super) steps: u32,
    pub(super) bytes_moved: u64,
    /// Largest share among the lanes, as they report it.
    pub(super) commitment_share: f32,
    pub(super) gas: BTreeMap<&'static str, u64>,
    /// Of workers, as they said when they were hired.
    pub(super) tiers: Tiers,
    /// Jobs that were given up on the way, oldest first.
    pub(super) before: Vec<Given>,
    #[serde(flatten)]
    pub(super) report: &'a Report,
}

/// A job that was given up, and what it came to.
#[derive(Serialize)]
pub(super) struct Given {
    pub(super) job: JobId,
    /// Intervals after which a later job has gone on from it.
    pub(super) intervals: u32,
    #[serde(flatten)]
    pub(super) loss: Loss,
    /// Wei by worker.
    pub(super) paid: BTreeMap<Address, Wei>,
    pub(super) convictions: Vec<Conviction>,
    pub(super) refund: Option<Wei>,
}

/// Writes it to a file, if there is to be one.
pub(super) fn write(file: Option<&Path>, summary: &impl Serialize) -> Result<()> {
    let Some(path) = file else { return Ok(()) };
    std::fs::write(path, serde_json::to_vec(summary)?).with_context(|| format!("cannot write {}", path.display()))
}

/// What people read of it; it learned from labels of a kind.
pub(super) fn show(summary: &Summary<'_>, view: &JobView, label: &str) -> String {
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
    lines.extend(summary.before.iter().flat_map(|given| given.show(token(view))));
    lines.extend(money((report, &summary.tiers), &summary.gas, token(view)));
    lines.join("\n")
}

impl Given {
    fn show(&self, token: &str) -> Vec<String> {
        let paid = Wei(self.paid.values().map(|paid| paid.0).sum());
        let (job, intervals, refund) = (self.job, self.intervals, self.refund.unwrap_or_default());
        let came_to = format!("{intervals} intervals of it, {paid} {token} paid, {refund} {token} returned");
        let mut lines = vec![format!("before       job {job}: {came_to}; {}", self.loss)];
        lines.extend(self.convictions.iter().map(Conviction::show));
        lines
    }
}

/// What was paid, returned, burnt as gas, and slashed.
pub(super) fn money((report, tiers): (&Report, &Tiers), gas: &BTreeMap<&'static str, u64>, token: &str) -> Vec<String> {
    let paid = report.paid.iter();
    let paid = paid.map(|(worker, amount)| format!("paid         {amount} {token} to {}", tiers.words(*worker)));
    let mut lines: Vec<String> = paid.collect();
    lines.push(format!("returned     {} {token} to the user", report.refund.unwrap_or_default()));
    let gas: Vec<String> = gas.iter().map(|(what, gas)| format!("{what} {gas}")).collect();
    lines.push(format!("gas          {}", gas.join(", ")));
    lines.extend(report.convictions.iter().map(Conviction::show));
    lines
}
