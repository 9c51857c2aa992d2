//! `tensorlink challenge`: audits one claim now, or the receipts of texts.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use cid::Cid;
use clap::Args;
use serde::Serialize;
use tensorlink_node::ports::{Event, EventAt, Place};
use tensorlink_tensor::TorchEngine;
use tensorlink_types::abi::Claim;
use tensorlink_types::{ClaimId, JobId, Lane};
use tensorlink_user::serving::Receipts;
use tensorlink_validator::{Auditor, ChallengeEnd, Finding, Standing, Target, convict};
use tokio_util::sync::CancellationToken;

use crate::advice;
use crate::config::Config;
use crate::node::Node;
use crate::{device, output, when};

#[derive(Args, Debug)]
pub struct ChallengeArgs {
    /// The job's number.
    #[arg(long, required_unless_present = "receipt")]
    pub job: Option<u64>,
    /// Stage of the lane; with --receipt: the only stage to audit [default: every stage].
    #[arg(long, required_unless_present = "receipt")]
    pub stage: Option<u16>,
    /// Replica of the lane.
    #[arg(long, default_value_t = 0, conflicts_with = "receipt")]
    pub replica: u16,
    /// Interval of the claim.
    #[arg(long, required_unless_present = "receipt")]
    pub interval: Option<u32>,
    /// Receipts of texts of a serving job instead: what `GET /v1/receipts/{id}` of its gateway answers.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["job", "interval"])]
    pub receipt: Option<PathBuf>,
    /// Where the worker's answers do not decide: make it answer on chain, against the bond of a challenge. Plays until
    /// that is over.
    #[arg(long, conflicts_with = "receipt")]
    pub force: bool,
    /// Device to compute on: cpu, cuda or cuda:N [default: CUDA if there is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

/// Disk for what is fetched for the audit, bytes.
const DISK: u64 = 10 << 30;
/// Largest file of receipts, bytes.
const MAX_RECEIPTS: u64 = 64 << 20;
/// Between two looks at the chain's head, and how many there are before a chain counts as one that stands: ten minutes.
const LOOK: Duration = Duration::from_millis(500);
const LOOKS: u32 = 1_200;

#[derive(Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
enum Shown {
    Right,
    Convicted {
        fault: String,
        gas: u64,
    },
    /// By a challenge on chain.
    Forced {
        fault: String,
    },
}

/// A verdict on a text's receipt of a lane.
#[derive(Serialize)]
struct OfLane {
    text: u32,
    stage: u16,
    replica: u16,
    #[serde(flatten)]
    shown: Shown,
}

/// Audits, and convicts the worker of what is wrong.
pub async fn run(config: &Config, args: &ChallengeArgs, shutdown: CancellationToken) -> Result<()> {
    let receipts = args.receipt.as_deref().map(read).transpose()?;
    let (make, memory) = device::for_audits(args.device.as_deref())?;
    let (node, _folder) = Node::beside(config, DISK, &shutdown).await?;
    let head = node.ports.chain.head().await?.number;
    let events = node.ports.chain.past_events(node.ports.chain.deployment().block, head).await?;
    let auditor = node.auditor(move || make(), memory, 1).await?;
    let audited = match &receipts {
        Some(receipts) => texts(config, &auditor, (receipts, args.stage), &events).await,
        None => claim(config, &auditor, args, &events).await,
    };
    node.net.shutdown().await;
    audited
}

/// Audits a claim on chain.
async fn claim(
    config: &Config,
    auditor: &Auditor<TorchEngine>,
    args: &ChallengeArgs,
    events: &[EventAt],
) -> Result<()> {
    let (Some(job), Some(stage), Some(interval)) = (args.job, args.stage, args.interval) else {
        bail!("name a claim with --job, --stage and --interval, or a file with --receipt");
    };
    let lane = Lane { job: JobId(job), stage, replica: args.replica };
    let known = auditor.apply_after(None, events);
    let manifest = manifest(events, lane.job)?;
    let (id, claim, at) = committed(events, lane, interval)?;
    let target = Target { id, claim: claim.clone(), standing: Standing::Committed { at }, manifest, listed: None };
    let shown = if args.force {
        let confirmations = config.confirmations(auditor.ports().chain.deployment().chain_id);
        force(auditor, &target, (known, confirmations)).await?
    } else {
        audit(auditor, &target).await?
    };
    output::print(config.json, &shown, || shown.text("the claim"))
}

/// Audits the receipts of texts, of every lane or of one stage's; stage by stage, because a stage is fetched once.
async fn texts(
    config: &Config,
    auditor: &Auditor<TorchEngine>,
    (receipts, only): (&Receipts, Option<u16>),
    events: &[EventAt],
) -> Result<()> {
    let all = || receipts.texts.iter().flat_map(|text| text.stages.iter().map(move |receipt| (text, receipt)));
    let mut wanted: Vec<_> = all().filter(|(_, receipt)| only.is_none_or(|only| only == receipt.claim.stage)).collect();
    ensure!(!wanted.is_empty(), "the file has no receipt of that stage");
    wanted.sort_by_key(|(text, receipt)| (text.job, receipt.claim.stage));
    let mut undecided = Vec::new();
    for (text, receipt) in wanted {
        let (number, claim) = (text.text, receipt.claim.clone());
        let Lane { job, stage, replica } = claim.lane();
        let named = format!("text {number}, stage {stage}, replica {replica}");
        ensure!(job == text.job, "{named}: the receipt is of another job than the file says");
        let target = Target::of_receipt(&auditor.ports().contracts, claim, manifest(events, text.job)?);
        match audit(auditor, &target).await {
            Ok(shown) => {
                let verdict = OfLane { text: number, stage, replica, shown };
                output::print(config.json, &verdict, || format!("{named}: {}", verdict.shown.text("the receipt")))?;
            }
            Err(error) => undecided.push(format!("{named}: {}", advice::words(&error))),
        }
    }
    ensure!(undecided.is_empty(), "not decided: {}", undecided.join("; "));
    Ok(())
}

async fn audit(auditor: &Auditor<TorchEngine>, target: &Target) -> Result<Shown> {
    Ok(match auditor.audit(target).await? {
        Finding::Right => Shown::Right,
        Finding::Wrong { call, fault } => Shown::Convicted { fault, gas: convict(auditor, call).await? },
        Finding::Withheld { until } => bail!(
            "the claim is not what its own execution gives; its worker tells what convicts it from {} on, when the chain's auditors have \
             answered: run this again then, or with --force",
            when::due(until, when::now())
        ),
        Finding::Unproven(reason) if matches!(target.standing, Standing::Committed { .. }) => {
            bail!(
                "it could not be decided: {reason}; with --force the worker is made to answer on chain, against a bond"
            )
        }
        Finding::Unproven(reason) => bail!("it could not be decided: {reason}"),
    })
}

/// Audits, and where that does not decide makes the worker answer on chain. Takes up a challenge of ours that an
/// earlier run has opened: a second one would cost a second bond.
async fn force(
    auditor: &Auditor<TorchEngine>,
    target: &Target,
    (known, confirmations): (Option<Place>, u64),
) -> Result<Shown> {
    if auditor.games().on(target.id).is_none() {
        match auditor.audit(target).await? {
            Finding::Right => return Ok(Shown::Right),
            Finding::Wrong { call, fault } => {
                return Ok(Shown::Convicted { fault, gas: convict(auditor, call).await? });
            }
            Finding::Unproven(reason) => tracing::warn!(%reason, "the worker's answers do not decide"),
            Finding::Withheld { .. } => {}
        }
    }
    let known = auditor.apply_after(known, &settled(auditor, confirmations).await?);
    let playing = async {
        match auditor.games().on(target.id) {
            Some(challenge) => {
                tracing::info!(%challenge, "a challenge of ours is open on the claim: it is taken up");
                auditor.resume(target).await
            }
            None => auditor.challenge(target).await,
        }
    };
    let ended = tokio::select! {
        ended = playing => ended?,
        followed = auditor.follow(known) => {
            followed?;
            bail!("the chain is not followed any more; where a challenge is open our clock runs: run this again to take it up");
        }
    };
    match ended {
        ChallengeEnd::Right => Ok(Shown::Right),
        ChallengeEnd::Convicted(fault) => Ok(Shown::Forced { fault }),
        ChallengeEnd::Taken => bail!("it is being played already"),
        ChallengeEnd::Lost(reason) => bail!("the challenge brought nothing: {reason}"),
    }
}

/// The events up to the newest block, when that is confirmed: of what an earlier run of this command had mined nothing
/// is missing.
async fn settled(auditor: &Auditor<TorchEngine>, confirmations: u64) -> Result<Vec<EventAt>> {
    let (chain, clock) = (&auditor.ports().chain, &auditor.ports().clock);
    let head = chain.head().await?.number;
    let mut looks = 0..LOOKS;
    while chain.head().await?.number < head.saturating_add(confirmations) {
        ensure!(
            looks.next().is_some(),
            "block {head} is not confirmed after ten minutes: run this again when the chain makes blocks"
        );
        clock.sleep(LOOK).await;
    }
    Ok(chain.past_events(chain.deployment().block, head).await?)
}

/// CID of the manifest of a posted job.
pub(super) fn manifest(events: &[EventAt], of: JobId) -> Result<Cid> {
    let found = events.iter().find_map(|at| match &at.event {
        Event::JobPosted { job, terms, .. } if *job == of => Cid::try_from(terms.manifest.as_ref()).ok(),
        _ => None,
    });
    found.with_context(|| format!("there is no confirmed job {of} with a manifest"))
}

/// The confirmed claim of a lane for an interval: its id, itself, and when it was committed.
pub(super) fn committed(events: &[EventAt], lane: Lane, interval: u32) -> Result<(ClaimId, &Claim, u64)> {
    let found = events.iter().find_map(|at| match &at.event {
        Event::ClaimCommitted { id, claim, committed_at } if claim.lane() == lane && claim.interval == interval => {
            Some((*id, claim, *committed_at))
        }
        _ => None,
    });
    found.with_context(|| format!("{lane} has no confirmed claim for interval {interval}"))
}

pub(super) fn read(path: &Path) -> Result<Receipts> {
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    ensure!(size <= MAX_RECEIPTS, "{} is no file of receipts: it has {size} bytes", path.display());
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| {
        format!("{} holds no receipts: save what GET /v1/receipts/{{id}} of the gateway answers", path.display())
    })
}

impl Shown {
    fn text(&self, what: &str) -> String {
        match self {
            Self::Right => format!("{what} is right"),
            Self::Convicted { fault, gas } => format!("convicted: {fault} (gas {gas})"),
            Self::Forced { fault } => format!("convicted by a challenge: {fault}"),
        }
    }
}
