//! `tensorlink challenge`: audits one claim now.

use anyhow::{Context, Result, bail};
use cid::Cid;
use serde::Serialize;
use tensorlink_node::ports::Event;
use tensorlink_types::{JobId, Lane};
use tensorlink_validator::{Finding, Target, convict};
use tokio_util::sync::CancellationToken;

use crate::args::ChallengeArgs;
use crate::config::Config;
use crate::node::Node;
use crate::{device, output};

/// Disk for what is fetched for the audit, bytes.
const DISK: u64 = 10 << 30;

#[derive(Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
enum Shown {
    Right,
    Convicted { fault: String, gas: u64 },
}

/// Audits a claim and convicts its worker if it is wrong.
pub async fn run(config: &Config, args: &ChallengeArgs, shutdown: CancellationToken) -> Result<()> {
    let engine = device::open(None)?;
    let memory = engine.memory()? / 2;
    let node = Node::start(config, DISK, &shutdown).await?;
    let lane = Lane { job: JobId(args.job), stage: args.stage, replica: args.replica };
    let head = node.ports.chain.head().await?.number;
    let events = node.ports.chain.past_events(node.ports.chain.deployment().block, head).await?;
    let manifest = events.iter().find_map(|at| match &at.event {
        Event::JobPosted { job, terms, .. } if *job == lane.job => Cid::try_from(terms.manifest.as_ref()).ok(),
        _ => None,
    });
    let manifest = manifest.with_context(|| format!("there is no confirmed job {} with a manifest", lane.job))?;
    let target = events.into_iter().find_map(|at| match at.event {
        Event::ClaimCommitted { id, claim, committed_at }
            if claim.lane() == lane && claim.interval == args.interval =>
        {
            Some(Target { id, claim, committed_at, manifest })
        }
        _ => None,
    });
    let target = target.with_context(|| format!("{lane} has no confirmed claim for interval {}", args.interval))?;
    let auditor = node.auditor(engine, memory, 1);
    let shown = match auditor.audit(&target).await? {
        Finding::Right => Shown::Right,
        Finding::Wrong { call, fault } => Shown::Convicted { fault, gas: convict(&auditor, call).await? },
        Finding::Unproven(reason) => bail!("the claim could not be decided: {reason}"),
    };
    node.net.shutdown().await;
    output::print(config.json, &shown, || match &shown {
        Shown::Right => "the claim is right".into(),
        Shown::Convicted { fault, gas } => format!("convicted: {fault} (gas {gas})"),
    })
}
