//! Stages of a replica, each with a disk of its own, over in-memory streams.

use std::sync::Arc;

use tensorlink_node::ports::{Protocol, Store};
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::gossip::Progress;
use tensorlink_node::{Ports, Roster, wire};
use tensorlink_program::Reference;
use tensorlink_types::Address;
use tensorlink_types::abi::Claim;
use tensorlink_worker::Context;
use tensorlink_worker::record::{LaneLog, LaneRecord};
use tensorlink_worker::stream_router::StreamRouter;
use tensorlink_worker::training::lane::LaneTask;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::fixtures::config;
use crate::support::{self, Hub, MemoryChain, MemoryStore, USER, identity, job_view, lane, shards};

pub(crate) struct Stage {
    pub(crate) log: Arc<LaneLog>,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
}

pub(crate) struct World {
    pub(crate) shards: Vec<Arc<Shard>>,
    pub(crate) chain: Arc<MemoryChain>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) folders: Vec<tempfile::TempDir>,
    intervals: u32,
}

pub(crate) fn address(stage: usize) -> Address {
    identity(stage as u8 + 1).address()
}

impl World {
    pub(crate) fn new(stages: usize, intervals: u32) -> Self {
        let shards = shards(stages);
        let workers: Vec<_> = (0..stages).map(address).collect();
        let chain = MemoryChain::new(job_view(stages as u16, intervals), &workers, &shards);
        let folders = (0..stages).map(|_| tempfile::tempdir().unwrap()).collect();
        Self { shards, chain, store: Arc::default(), hub: Arc::default(), folders, intervals }
    }

    /// Starts the process of a stage, on the disk that an earlier one left.
    pub(crate) async fn start(&self, stage: usize) -> Stage {
        self.start_with(stage, self.store.clone()).await
    }

    /// The same, with another store of its own.
    pub(crate) async fn start_with(&self, stage: usize, own: Arc<dyn Store>) -> Stage {
        let (chain, store, hub) = (self.chain.clone(), self.store.clone(), self.hub.clone());
        let ports = support::ports(stage as u8 + 1, chain, store, hub, self.folders[stage].path());
        let ports = Ports { store: own, ..ports };
        let journal = ports.journal.clone();
        let router = StreamRouter::default();
        tokio::spawn(router.clone().run(ports.net.accept(Protocol::Tensor).await.unwrap()));
        let number = stage as u16;
        let context = Arc::new(Context {
            ports,
            config: config(1 << 30, 1),
            engine: Arc::new(|| Ok(Reference)),
            roster: Arc::new(Roster::new(address(stage))),
            stream_router: router,
        });
        let log = Arc::new(LaneLog::open(journal, LaneRecord::new(lane(number), USER, String::new())).unwrap());
        let neighbours =
            (stage.checked_sub(1).map(address), Some(stage + 1).filter(|next| *next < self.shards.len()).map(address));
        let job = job_view(self.shards.len() as u16, self.intervals);
        let task = LaneTask {
            context,
            job,
            log: log.clone(),
            shard: self.shards[stage].clone(),
            neighbours,
            awaited: Arc::default(),
        };
        let stop = CancellationToken::new();
        let run = task.run(stop.clone());
        Stage { log, stop, task: tokio::spawn(async move { run.await.unwrap() }) }
    }

    pub(crate) async fn train(&self) -> Vec<Vec<Claim>> {
        let mut stages = Vec::new();
        for stage in 0..self.shards.len() {
            stages.push(self.start(stage).await);
        }
        let mut claims = Vec::new();
        for stage in stages {
            stage.task.await.unwrap();
            claims.push(claims_of(&stage.log));
        }
        claims
    }

    /// What a stage has published of itself.
    pub(crate) fn reports(&self, stage: usize) -> Vec<Progress> {
        let published = self.hub.published.lock().unwrap();
        let own = published.iter().filter(|(by, _)| *by == address(stage));
        own.map(|(_, message)| wire::decode("progress", message).unwrap()).collect()
    }

    /// Stops the process of a stage, and starts it again on the same disk.
    pub(crate) async fn restart(&self, number: usize, stage: Stage) -> Stage {
        stage.stop.cancel();
        stage.task.await.unwrap();
        self.start(number).await
    }
}

pub(crate) fn claims_of(log: &LaneLog) -> Vec<Claim> {
    log.get().intervals.into_values().map(|interval| interval.claim).collect()
}

pub(crate) async fn until(log: &LaneLog, next: u32) {
    let mut changes = log.watch();
    while log.get().next < next {
        changes.changed().await.unwrap();
    }
}
