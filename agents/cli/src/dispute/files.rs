//! The program of a stage from its job's files: from this machine's store, an IPFS daemon, or peers.

use std::sync::Arc;

use anyhow::{Context, Result};
use cid::Cid;
use tempfile::TempDir;
use tensorlink_node::Identity;
use tensorlink_node::ports::{Call, Chain, StoreError};
use tensorlink_node::shard::ShardSource;
use tensorlink_proof::commit::program::program_hash;
use tensorlink_types::{B256, Program};
use tokio_util::sync::CancellationToken;

use super::{Dispute, Docket, found};
use crate::config::Config;
use crate::node::Node;

/// Disk for the files, bytes.
const DISK: u64 = 10 << 30;

/// Where the program of a dispute is to be had, and which it is: its number of tokens, where it serves, and its root.
pub async fn of(
    chain: &dyn Chain,
    docket: &Docket,
    dispute: &Dispute,
    proof: Option<&Call>,
) -> Result<(ShardSource, (u32, B256))> {
    let claim = dispute.claimed.claim.as_ref().context("the claim is not known")?;
    let lane = claim.lane();
    let job = docket.job(lane.job).context("the job is not known")?;
    let manifest = Cid::try_from(job.terms.manifest.as_ref()).context("the job names no files")?;
    let auditor = dispute.conviction.as_ref().map(|conviction| conviction.auditor);
    let challengers = dispute.challenges.iter().map(|challenge| challenge.challenger);
    // Who audits has the files, too.
    let holders = job.workers.iter().copied().chain([job.user]).chain(auditor).chain(challengers).collect();
    let root = match proof.and_then(found::program) {
        Some(header) => program_hash(header),
        None => chain.program_root(lane.job, lane.stage).await?,
    };
    let tokens = dispute.conviction.as_ref().map_or(0, |conviction| conviction.step);
    Ok((ShardSource { job: lane.job, stage: lane.stage, manifest, holders }, (tokens, root)))
}

/// Fetches the program, as nobody in particular.
pub async fn program(
    config: &Config,
    nobody: (Identity, Arc<dyn Chain>),
    source: Result<(ShardSource, (u32, B256))>,
    shutdown: &CancellationToken,
) -> Result<Program> {
    let (source, program) = source?;
    let (node, _folder) = open(config, nobody, shutdown).await?;
    let fetched = node.program(config, &source, program).await;
    node.net.shutdown().await;
    fetched
}

/// A node that only fetches: on this machine's own blocks, or, where there are none or another process has them, in a
/// folder that is removed with the second value.
async fn open(
    config: &Config,
    (identity, chain): (Identity, Arc<dyn Chain>),
    shutdown: &CancellationToken,
) -> Result<(Node, Option<TempDir>)> {
    // Addresses of one's own may be taken by one's own node.
    let config = Config { listen: vec!["/ip4/127.0.0.1/tcp/0".to_owned()], ..config.clone() };
    if config.data_dir.join("blocks").is_dir() {
        match Node::join(&config, (identity.clone(), chain.clone()), DISK, shutdown).await {
            Err(error) if matches!(error.downcast_ref(), Some(StoreError::InUse(_))) => {}
            other => return Ok((other?, None)),
        }
    }
    let folder = tempfile::tempdir().context("no temporary folder for the job's files")?;
    let beside = Config { data_dir: folder.path().to_owned(), ..config };
    Ok((Node::join(&beside, (identity, chain), DISK, shutdown).await?, Some(folder)))
}
