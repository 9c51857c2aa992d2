//! Follows a serving job: what its lanes redeem, and its settlement once it was closed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;
use tensorlink_node::ports::chain::JobView;
use tensorlink_types::JobId;
use tensorlink_user::User;
use tokio_util::sync::CancellationToken;

use super::balance::Balance;
use super::silence::Silence;
use super::summary::money;
use super::{PERIOD, collect, gas, known_tiers, patiently, token, wind_up, write};
use crate::amount::Wei;
use crate::config::Config;
use crate::live::say;
use crate::node::Node;
use crate::output;
use crate::report::Report;
use crate::tiers::Tiers;

/// What a serving job came to.
#[derive(Serialize)]
struct Summary<'a> {
    job: JobId,
    workers_paid: usize,
    /// Wei of SNO.
    slashed: Wei,
    seconds: f64,
    gas: BTreeMap<&'static str, u64>,
    /// Of workers, as they said when they were hired.
    tiers: Tiers,
    #[serde(flatten)]
    report: &'a Report,
}

/// Follows a serving job until it is settled, then reports. A running job stays open; one that was closed is settled
/// when what it redeemed last can have been audited.
pub async fn serving(
    config: &Config,
    node: &Node,
    user: &User,
    (view, report_file): (&JobView, Option<&Path>),
    shutdown: &CancellationToken,
) -> Result<()> {
    let (job, started) = (view.id, Instant::now());
    let mut balance = Balance::new(job, user);
    let mut ticks = tokio::time::interval(PERIOD);
    let mut shown = String::new();
    let parameters = patiently(async || node.ports.chain.parameters().await).await?;
    let tiers = known_tiers(node, job);
    let mut silence = Silence::new(job, user, tiers.clone(), parameters.seal_window);
    while balance.report.refund.is_none() {
        tokio::select! {
            () = shutdown.cancelled() => {
                bail!("interrupted; the job goes on: `tensorlink job watch {job}` takes it up again")
            }
            told = balance.go_on() => told?,
            _ = ticks.tick() => {
                wind_up(node, user, view).await?;
                silence.look(view, user, config.json)?;
            }
        }
        let line = line(&balance.report);
        if !config.json && shown != line {
            say!("{line}");
            shown = line;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    collect(node, view).await;
    let mut report = balance.settled().await?;
    let gas = gas(node, &mut report).await?;
    let (workers_paid, slashed) = (report.paid.len(), report.slashed());
    let summary = Summary { job, workers_paid, slashed, seconds, gas, tiers, report: &report };
    write(report_file, &summary)?;
    output::print(config.json, &summary, || show(&summary, token(view)))
}

fn line(report: &Report) -> String {
    let redeemed: Vec<String> =
        report.redeemed.iter().map(|(lane, redeemed)| format!("{lane}: {} tokens", redeemed.tokens)).collect();
    if redeemed.is_empty() { "nothing redeemed yet".into() } else { format!("redeemed: {}", redeemed.join(", ")) }
}

fn show(summary: &Summary<'_>, token: &str) -> String {
    let report = summary.report;
    let mut lines = vec![format!("job {} is settled after {:.1} s", summary.job, summary.seconds)];
    for (lane, redeemed) in &report.redeemed {
        lines.push(format!("redeemed     {lane}: {} tokens by {} vouchers", redeemed.tokens, redeemed.vouchers));
    }
    lines.extend(money((report, &summary.tiers), &summary.gas, token));
    lines.join("\n")
}
