//! A worker's process: the worker of `tensorlink worker run`, on a chain that is told.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use tensorlink_node::budget::Budget;
use tensorlink_node::price::Prices;
use tensorlink_node::{Roster, Speed};
use tensorlink_worker::{Context as WorkerContext, Limits, Worker, WorkerConfig};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::job::{self, Job};
use super::ledger::Ledger;
use crate::{Bench, Place};

/// Says on stdout that this process has an engine and a node, and no weights yet.
pub(super) const READY: &str = "ready";
/// Bytes of disk that a worker's store may take.
pub(super) const DISK: u64 = 1 << 32;

/// Serves a stage of the job in `folder`, once a line comes on stdin, and until its end.
pub(crate) async fn run(bench: &Bench<'_>, (folder, stage): (&Path, u16), shutdown: CancellationToken) -> Result<()> {
    let job = Job::read(folder)?;
    let engines = bench.binary.engines(bench.device)?;
    let identity = job::worker(stage)?;
    let own = identity.address();
    let chain = Arc::new(Ledger::new(&job, folder, own, job.events()?)?);
    let home = folder.join(format!("worker-{stage}"));
    let place = Place { folder: &home, disk: DISK, bootstrap: job.user_at.clone() };
    let node = bench.binary.join(place, (identity, chain), &shutdown).await?;
    let context = WorkerContext {
        config: WorkerConfig {
            memory: Budget::new(u64::MAX),
            max_lanes: 1,
            // The job has its workers already.
            speed: Speed::LEAST,
            prices: Prices { sno: 1, eth: None },
            limits: Limits::NONE,
            in_use: watch::channel(false).1,
            credit: Some(u32::MAX),
        },
        ports: node.ports,
        engine: Arc::new(move || engines()),
        roster: Arc::new(Roster::new(own)),
        stream_router: Default::default(),
    };
    bench.binary.print(READY)?;
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
