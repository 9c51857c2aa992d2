//! A checkpoint that a worker's disk has damaged.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cid::Cid;
use tensorlink_node::ports::{Net, Store, StoreError};
use tensorlink_node::shard::Shard;
use tensorlink_node::{Ports, Roster};
use tensorlink_program::Reference;
use tensorlink_store::{Content, Embedded};
use tensorlink_types::Address;
use tensorlink_types::abi::Claim;
use tensorlink_worker::Context;
use tensorlink_worker::record::{LaneLog, LaneRecord};
use tensorlink_worker::training::lane::{LaneError, LaneTask};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::fixtures::{config, open};
use crate::support::{self, Hub, MemoryChain, MemoryNet, USER, identity, job_view, lane, shards};

const KEY: u8 = 1;
const LIMIT: u64 = 1 << 30;
/// Bytes by which a state is found on the disk.
const MARK: usize = 24;

/// Blocks on a disk, served until it is dropped.
async fn store(hub: &Arc<Hub>, own: Address, folder: &Path) -> (Arc<Content<Embedded>>, DropGuard) {
    let (net, serving) = (Arc::new(MemoryNet { own, hub: hub.clone() }), CancellationToken::new());
    let content = Content::start(open(folder, LIMIT).await, net as Arc<dyn Net>, serving.clone()).await.unwrap();
    (Arc::new(content), serving.drop_guard())
}

/// A worker with the whole model, and its disk.
struct Worker {
    shard: Arc<Shard>,
    hub: Arc<Hub>,
    disk: tempfile::TempDir,
    record: tempfile::TempDir,
}

impl Worker {
    fn new() -> Self {
        let (disk, record) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Self { shard: shards(1).remove(0), hub: Arc::default(), disk, record }
    }

    /// Goes on until so many intervals are done.
    async fn train(&self, intervals: u32) -> Result<Arc<LaneLog>, LaneError> {
        let own = identity(KEY).address();
        let chain = MemoryChain::new(job_view(1, intervals), &[own], std::slice::from_ref(&self.shard));
        let (store, _serving) = store(&self.hub, own, self.disk.path()).await;
        let ports = support::ports(KEY, chain, Arc::default(), self.hub.clone(), self.record.path());
        let ports = Ports { store, ..ports };
        let log = LaneLog::open(ports.journal.clone(), LaneRecord::new(lane(0), USER, String::new())).unwrap();
        let log = Arc::new(log);
        let context = Arc::new(Context {
            ports,
            config: config(LIMIT, 1),
            engine: Arc::new(|| Ok(Reference)),
            roster: Arc::new(Roster::new(own)),
            stream_router: Default::default(),
        });
        let (job, shard) = (job_view(1, intervals), self.shard.clone());
        let task =
            LaneTask { context, job, log: log.clone(), shard, neighbours: (None, None), awaited: Arc::default() };
        task.run(CancellationToken::new()).await.map(|()| log)
    }

    /// The file of the newest state.
    async fn newest(&self, log: &LaneLog) -> (Cid, Bytes) {
        let cid: Cid = log.get().next_state.unwrap().parse().unwrap();
        let (store, _serving) = store(&self.hub, identity(KEY).address(), self.disk.path()).await;
        let state = store.get(&cid, &[], LIMIT).await.unwrap();
        (cid, state)
    }

    /// Flips a byte of a file wherever it lies on the disk.
    async fn damage(&self, file: &[u8]) {
        // What is written over what another writes at the same time would damage more than the file.
        drop(open(self.disk.path(), LIMIT).await);
        let path = self.disk.path().join("blocks.redb");
        let mut bytes = std::fs::read(&path).unwrap();
        let mark = &file[file.len() / 2..][..MARK];
        let places: Vec<usize> = (0..bytes.len() - MARK).filter(|at| bytes[*at..].starts_with(mark)).collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at] ^= 1;
        }
        std::fs::write(path, bytes).unwrap();
    }
}

fn claims(log: &LaneLog) -> Vec<Claim> {
    log.get().intervals.into_values().map(|interval| interval.claim).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_checkpoint_comes_from_whoever_else_has_it_and_is_whole_again() {
    let expected = claims(&Worker::new().train(3).await.unwrap());
    let worker = Worker::new();
    let (cid, state) = worker.newest(&worker.train(2).await.unwrap()).await;
    let users = tempfile::tempdir().unwrap();
    let (user, _serving) = store(&worker.hub, USER, users.path()).await;
    assert_eq!(user.put(state.clone()).await.unwrap(), cid);
    worker.damage(&state).await;
    assert_eq!(claims(&worker.train(3).await.unwrap()), expected);
    // Nobody else is asked now.
    let (store, _serving) = store(&worker.hub, identity(KEY).address(), worker.disk.path()).await;
    assert_eq!(store.get(&cid, &[], LIMIT).await.unwrap(), state);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_checkpoint_that_nobody_else_has_ends_the_lane_and_is_told() {
    let worker = Worker::new();
    let (cid, state) = worker.newest(&worker.train(2).await.unwrap()).await;
    // Whoever should have it has another.
    let users = tempfile::tempdir().unwrap();
    let (user, _serving) = store(&worker.hub, USER, users.path()).await;
    user.put(Bytes::from_static(b"something else")).await.unwrap();
    worker.damage(&state).await;
    let error = worker.train(3).await.unwrap_err();
    assert!(matches!(&error, LaneError::Store(StoreError::Mismatch { cid: of, .. }) if *of == cid), "{error}");
    assert!(error.to_string().contains("this node's own store"), "{error}");
}
