//! Who owns what stays; what nobody owns makes room; strangers fill no more than their share.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cid::Cid;
use tempfile::TempDir;
use tensorlink_node::ports::{Net, Owner, Store, StoreError};
use tensorlink_store::{Content, Embedded, Kubo};
use tensorlink_types::{B256, ClaimId, JobId, Lane};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::daemon::Daemon;
use crate::memory_net::Hub;
use crate::support::{LIMIT, Node, content};

const KIB: usize = 1 << 10;
const BUDGET: usize = 1 << 20;

/// A store of a megabyte, of either kind.
struct World {
    hub: Hub,
    /// Has every file.
    user: Node,
    daemon: Option<Daemon>,
    folder: TempDir,
}

/// A process that has the store open.
struct Process {
    store: Arc<dyn Store>,
    _serving: DropGuard,
}

impl World {
    async fn start(daemon: Option<Daemon>) -> Self {
        let hub = Hub::default();
        let user = Node::start(&hub, 1, LIMIT).await;
        Self { hub, user, daemon, folder: tempfile::tempdir().unwrap() }
    }

    /// One with an embedded store, and one with a daemon, if there is any to start.
    async fn both(test: &str) -> Vec<Self> {
        let mut worlds = vec![Self::start(None).await];
        if let Some(daemon) = Daemon::start(test).await {
            worlds.push(Self::start(Some(daemon)).await);
        }
        worlds
    }

    async fn process(&self) -> Process {
        let shutdown = CancellationToken::new();
        let port: Arc<dyn Net> = self.hub.node(2);
        let store: Arc<dyn Store> = match &self.daemon {
            Some(daemon) => {
                let kubo = opened(|| Kubo::connect(&daemon.url, self.folder.path(), BUDGET as u64)).await;
                Arc::new(Content::start(kubo, port, shutdown.clone()).await.unwrap())
            }
            None => {
                let embedded = opened(async || Embedded::open(self.folder.path(), BUDGET as u64)).await;
                Arc::new(Content::start(embedded, port, shutdown.clone()).await.unwrap())
            }
        };
        Process { store, _serving: shutdown.drop_guard() }
    }

    /// A file that the user has.
    async fn file(&self, len: usize, seed: u32) -> Cid {
        self.user.store.put(content(len, seed)).await.unwrap()
    }

    /// Fetches a file of the user's for an owner.
    async fn fetch(&self, process: &Process, owner: Owner, cid: &Cid) -> Result<Bytes, StoreError> {
        process.store.of(owner).get(cid, &[self.user.address()], LIMIT).await
    }
}

/// Opens what a process that is about to end may still have open.
async fn opened<T>(open: impl AsyncFn() -> Result<T, StoreError>) -> T {
    let opening = async {
        loop {
            match open().await {
                Err(StoreError::InUse(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
                opened => return opened.unwrap(),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), opening).await.unwrap()
}

fn lane(job: u32) -> Owner {
    Owner::Lane(Lane { job: JobId(job.into()), stage: 0, replica: 0 })
}

async fn here(store: &Arc<dyn Store>, files: &[Cid]) -> Vec<bool> {
    let mut here = Vec::new();
    for cid in files {
        here.push(store.has(cid).await.unwrap());
    }
    here
}

fn size(folder: &Path) -> u64 {
    std::fs::metadata(folder.join("blocks.redb")).map_or(0, |file| file.len())
}

/// Each needs a fifth of the store, and all of them ten times as much as it holds.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_jobs_one_after_another_get_their_files_on_a_disk_of_a_tenth_of_them() {
    for world in World::both("fifty_jobs_one_after_another_get_their_files_on_a_disk_of_a_tenth_of_them").await {
        let process = world.process().await;
        let mut sizes = Vec::new();
        for job in 0..50 {
            let (shard, own) = (world.file(130 * KIB, job).await, process.store.of(lane(job)));
            assert_eq!(world.fetch(&process, lane(job), &shard).await.unwrap(), content(130 * KIB, job));
            let state = own.put(content(70 * KIB, 1000 + job)).await.unwrap();
            assert_eq!(process.store.owners().await.unwrap(), [lane(job)]);
            assert_eq!(process.store.room().await.unwrap(), (BUDGET - 200 * KIB) as u64);
            own.release().await.unwrap();
            assert_eq!(process.store.room().await.unwrap(), BUDGET as u64);
            assert_eq!(here(&process.store, &[shard, state]).await, [true, true], "as long as there is room");
            sizes.push(size(world.folder.path()));
        }
        assert!(sizes[10..].iter().all(|size| *size <= sizes[10]), "the disk stays as it was: {sizes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quotes_fill_their_share_and_displace_nothing_that_a_job_owns() {
    for world in World::both("quotes_fill_their_share_and_displace_nothing_that_a_job_owns").await {
        let process = world.process().await;
        let mut shard = Vec::new();
        for seed in 100..103 {
            shard.push(world.file(200 * KIB, seed).await);
            world.fetch(&process, lane(1), &shard[shard.len() - 1]).await.unwrap();
        }
        let mut quoted = Vec::new();
        for seed in 1..=20 {
            let file = world.file(100 * KIB, seed).await;
            assert_eq!(world.fetch(&process, Owner::Quote, &file).await.unwrap(), content(100 * KIB, seed));
            quoted.push(file);
        }
        assert_eq!(here(&process.store, &shard).await, [true; 3]);
        let kept = here(&process.store, &quoted).await;
        assert_eq!(kept.iter().filter(|kept| **kept).count(), 2, "of a quarter of the store: {kept:?}");
        assert_eq!(kept[18..], [true, true], "the latest");
        // What is larger than the share is quoted all the same.
        let large = world.file(300 * KIB, 21).await;
        assert_eq!(world.fetch(&process, Owner::Quote, &large).await.unwrap().len(), 300 * KIB);
        assert!(!process.store.has(&large).await.unwrap());
        assert_eq!(process.store.room().await.unwrap(), (BUDGET - 600 * KIB) as u64);

        // A job takes all that is left; nothing is quoted from disk then, but quoted it is.
        for seed in 103..105 {
            shard.push(world.file(212 * KIB, seed).await);
            world.fetch(&process, lane(1), &shard[shard.len() - 1]).await.unwrap();
        }
        let more = world.file(KIB, 23).await;
        world.fetch(&process, Owner::Quote, &more).await.unwrap();
        assert_eq!(here(&process.store, &shard).await, [true; 5]);
        assert!(!process.store.has(&more).await.unwrap());
        let error = world.fetch(&process, lane(2), &more).await.unwrap_err();
        assert!(matches!(error, StoreError::Full { needed: 1024, .. }), "{error}");
        for word in ["--disk", "`disk`", "1048576"] {
            assert!(error.to_string().contains(word), "{error}");
        }
        process.store.of(lane(1)).release().await.unwrap();
        world.fetch(&process, lane(2), &more).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_jobs_share_stays_while_one_of_them_needs_it() {
    for world in World::both("what_two_jobs_share_stays_while_one_of_them_needs_it").await {
        let process = world.process().await;
        let shared = world.file(300 * KIB, 0).await;
        world.fetch(&process, lane(1), &shared).await.unwrap();
        world.fetch(&process, lane(2), &shared).await.unwrap();
        process.store.of(lane(1)).release().await.unwrap();
        process.store.of(lane(1)).unpin(&shared).await.unwrap();
        process.store.of(Owner::Nobody).unpin(&shared).await.unwrap();
        for seed in 1..10 {
            process.store.of(lane(3)).put(content(300 * KIB, seed)).await.unwrap();
            process.store.of(lane(3)).release().await.unwrap();
        }
        assert!(process.store.has(&shared).await.unwrap());
        process.store.of(lane(2)).unpin(&shared).await.unwrap();
        assert!(!process.store.has(&shared).await.unwrap(), "its last owner let go");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_forgets_no_owner_and_not_what_was_used_last() {
    for world in World::both("a_restart_forgets_no_owner_and_not_what_was_used_last").await {
        let claim = ClaimId(B256::repeat_byte(3));
        let ward = Owner::Ward(Lane { job: JobId(1), stage: 0, replica: 0 });
        let owners = [Owner::Node, lane(1), ward, Owner::Holding(claim), Owner::Audit(claim)];
        let process = world.process().await;
        let mut owned = Vec::new();
        for (seed, owner) in (0..).zip(owners) {
            owned.push(process.store.of(owner).put(content(100 * KIB, seed)).await.unwrap());
        }
        let mut passing = Vec::new();
        for seed in 10..14 {
            let file = world.file(100 * KIB, seed).await;
            world.fetch(&process, Owner::Nobody, &file).await.unwrap();
            passing.push(file);
        }
        world.fetch(&process, Owner::Nobody, &passing[0]).await.unwrap();
        // A change that is on disk before the process ends.
        process.store.of(ward).own(&owned[0]).await.unwrap();
        drop(process);

        let process = world.process().await;
        assert_eq!(process.store.owners().await.unwrap(), owners);
        assert_eq!(process.store.room().await.unwrap(), (BUDGET - 500 * KIB) as u64);
        process.store.of(lane(2)).put(content(300 * KIB, 20)).await.unwrap();
        assert_eq!(here(&process.store, &owned).await, [true; 5]);
        assert_eq!(here(&process.store, &passing).await, [true, false, false, true], "the first was used again");
        assert!(process.store.of(lane(3)).own(&owned[1]).await.unwrap());
        assert!(!process.store.of(lane(3)).own(&passing[1]).await.unwrap(), "it is gone");
        for owner in owners {
            process.store.of(owner).release().await.unwrap();
        }
        assert_eq!(process.store.owners().await.unwrap(), [lane(2), lane(3)]);
    }
}
