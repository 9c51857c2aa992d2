//! A worker's process: the worker of `tensorlink worker run`, on a chain that is told.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use tensorlink_node::Roster;
use tensorlink_node::budget::Budget;
use tensorlink_node::price::Prices;
use tensorlink_worker::{Context as WorkerContext, Limits, Worker, WorkerConfig};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::job::{self, Job};
use super::ledger::Ledger;
use crate::config::Config;
use crate::device;
use crate::node::Node;
use crate::output;

/// Says on stdout that this process has an engine and a node, and no weights yet.
pub(super) const READY: &str = "ready";
/// Bytes of disk that a worker's store may take.
pub(super) const DISK: u64 = 1 << 32;

/// Where a node of the job keeps its files, and whom it knows.
pub(super) fn config(base: &Config, folder: &Path, bootstrap: Vec<String>) -> Config {
    Config {
        data_dir: folder.to_owned(),
        keystore: None,
        listen: vec!["/ip4/127.0.0.1/tcp/0".to_owned()],
        bootstrap,
        ipfs: None,
        ..base.clone()
    }
}

/// Serves a stage of the job in `folder`, once a line comes on stdin, and until its end.
pub(crate) async fn run(
    base: &Config,
    (folder, stage): (&Path, u16),
    device: &str,
    shutdown: CancellationToken,
) -> Result<()> {
    let job = Job::read(folder)?;
    let engine = device::open(Some(device))?;
    let identity = job::worker(stage)?;
    let own = identity.address();
    let chain = Arc::new(Ledger::new(&job, folder, own, job.events()?)?);
    let config = config(base, &folder.join(format!("worker-{stage}")), job.user_at.clone());
    let node = Node::join(&config, (identity, chain), DISK, &shutdown).await?;
    let make = device::factory(engine);
    let context = WorkerContext {
        config: WorkerConfig {
            memory: Budget::new(u64::MAX),
            max_lanes: 1,
            prices: Prices { sno: 1, eth: None },
            limits: Limits::NONE,
            credit: Some(u32::MAX),
        },
        ports: node.ports,
        engine: Arc::new(move || make()),
        roster: Arc::new(Roster::new(own)),
        stream_router: Default::default(),
    };
    output::line(READY)?;
    let (begin, begun) = oneshot::channel();
    let stop = shutdown.clone();
    // Who started this process holds the other end of the pipe, to its own end at most.
    std::thread::spawn(move || {
        let mut lines = std::io::stdin().lines();
        if let Some(Ok(_)) = lines.next() {
            // Nobody waits if the node is stopped.
            let _ = begin.send(());
        }
        lines.for_each(drop);
        stop.cancel();
    });
    begun.await.context("nobody needs this worker any more")?;
    Worker::run(Arc::new(context), shutdown).await?;
    node.net.shutdown().await;
    Ok(())
}
