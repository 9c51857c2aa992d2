//! A worker's disk: each job gets its files, and leaves no room taken.

use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use cid::Cid;
use tensorlink_node::history::Thrift;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::ports::{Event, Net, Owner, Ports, Store};
use tensorlink_node::shard::Shard;
use tensorlink_node::{Journal, Roster};
use tensorlink_program::Reference;
use tensorlink_store::{Content, Embedded};
use tensorlink_types::abi::{JobTerms, Offer};
use tensorlink_types::{Address, JobId, Lane, U256};
use tensorlink_worker::record::{LaneLog, LaneRecord};
use tensorlink_worker::{Context, Worker};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::fixtures::{config, open};
use crate::serving::world::{Hasty, until};
use crate::support::{
    self, Hub, KEY as JOB_KEY, MemoryChain, MemoryNet, STEPS, USER, WINDOW, identity, job_view, lane, publish_to,
    shards_of,
};

const KEY: u8 = 1;
const LIMIT: u64 = 1 << 30;
const INTERVALS: u32 = 2;

/// A user with all files, a chain with one job at a time, and a worker's disk.
struct World {
    chain: Arc<MemoryChain>,
    hub: Arc<Hub>,
    user: Arc<Content<Embedded>>,
    /// Jobs' shards, with their manifests.
    jobs: Vec<(Arc<Shard>, Cid)>,
    disk: tempfile::TempDir,
    records: tempfile::TempDir,
    _users_disk: tempfile::TempDir,
    _serving: DropGuard,
}

/// A worker's process.
struct Process {
    store: Arc<dyn Store>,
    stop: CancellationToken,
    thread: JoinHandle<()>,
}

impl Process {
    async fn stop(self) {
        self.stop.cancel();
        tokio::task::spawn_blocking(|| self.thread.join()).await.unwrap().unwrap();
    }

    async fn owners(&self) -> Vec<Owner> {
        self.store.owners().await.unwrap()
    }
}

fn worker() -> Address {
    identity(KEY).address()
}

const fn lane_of(job: u64) -> Lane {
    Lane { job: JobId(job), stage: 0, replica: 0 }
}

impl World {
    /// With so many jobs' files.
    async fn new(jobs: usize) -> Self {
        let (hub, serving, folder) = (Arc::<Hub>::default(), CancellationToken::new(), tempfile::tempdir().unwrap());
        let net: Arc<dyn Net> = Arc::new(MemoryNet { own: USER, hub: hub.clone() });
        let disk = Embedded::open(folder.path(), LIMIT).unwrap();
        let user = Arc::new(Content::start(disk, net, serving.clone()).await.unwrap());
        let mut published = Vec::new();
        for job in 1..=jobs {
            let shards = shards_of(1, job);
            let (manifest, _) = publish_to(&*user, &shards).await;
            published.push((shards[0].clone(), manifest));
        }
        let chain = MemoryChain::new(job_view(1, INTERVALS), &[worker()], &[published[0].0.clone()]);
        chain.with(|ledger| ledger.follows = true);
        let (disk, records) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let _serving = serving.drop_guard();
        Self { chain, hub, user, jobs: published, disk, records, _users_disk: folder, _serving }
    }

    /// Bytes of all jobs' files.
    async fn all(&self) -> u64 {
        LIMIT - self.user.room().await.unwrap()
    }

    /// The worker's disk, as an earlier process left it, until what is given with it is cancelled.
    async fn open(&self, budget: u64) -> (Arc<dyn Store>, CancellationToken) {
        let (net, stop) = (MemoryNet { own: worker(), hub: self.hub.clone() }, CancellationToken::new());
        let net: Arc<dyn Net> = Arc::new(net);
        (Arc::new(Content::start(open(self.disk.path(), budget).await, net, stop.clone()).await.unwrap()), stop)
    }

    /// Starts the worker on the disk that an earlier one left.
    async fn start(&self, budget: u64) -> Process {
        let (store, stop) = self.open(budget).await;
        let ports = support::ports(KEY, self.chain.clone(), Arc::default(), self.hub.clone(), self.records.path());
        let context = Arc::new(Context {
            ports: Ports { store: store.clone(), clock: Arc::new(Hasty), ..ports },
            config: config(LIMIT, 1),
            engine: Arc::new(|| Ok(Reference)),
            roster: Arc::new(Roster::new(worker())),
            stream_router: Default::default(),
        });
        let shutdown = stop.clone();
        let thread = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(Worker::run(context, shutdown)).unwrap();
        });
        Process { store, stop, thread }
    }

    /// The worker has the job, which starts.
    fn begin(&self, job: u64) {
        let (shard, manifest) = &self.jobs[job as usize - 1];
        let alone = MemoryChain::new(job_view(1, INTERVALS), &[worker()], std::slice::from_ref(shard));
        let roots = alone.with(|ledger| ledger.roots.clone());
        let terms = JobTerms {
            stages: 1,
            replicas: 1,
            intervals: INTERVALS,
            stepsPerInterval: STEPS,
            challengeWindow: WINDOW as u32,
            manifest: manifest.to_bytes().into(),
            ..JobTerms::default()
        };
        let expires = Default::default();
        let offer = Offer { job, worker: worker(), pricePerInterval: 1, expires, ..Offer::default() };
        self.chain.with(|ledger| {
            let view = ledger.lanes[&lane(0)];
            ledger.lanes.insert(lane_of(job), view);
            (ledger.job.id, ledger.job.state, ledger.roots) = (JobId(job), JobState::Running, roots);
            ledger.claims.clear();
            ledger.tell(Event::JobPosted { job: JobId(job), user: USER, deposit: U256::ZERO, terms });
            ledger.tell(Event::JobAccepted { job: JobId(job), offers: vec![offer] });
            ledger.tell(Event::JobStarted { job: JobId(job), job_key: JOB_KEY, deadline: 1100 });
        });
    }

    /// Until every interval is claimed.
    async fn claimed(&self) {
        until(|| async { self.chain.with(|ledger| ledger.claims.len()) == INTERVALS as usize }).await;
    }

    fn settle(&self, job: u64) {
        self.chain.with(|ledger| {
            ledger.job.state = JobState::Settled;
            ledger.tell(Event::JobSettled { job: JobId(job), refund: U256::ZERO });
        });
    }

    /// Something happens elsewhere, in a block so long after the last one that settled jobs before it are past.
    fn pass(&self) {
        self.chain.with(|ledger| {
            ledger.tell(Event::JobClosing { job: JobId(99), convicted: false });
            let last = ledger.told.as_mut().and_then(|told| told.last_mut()).unwrap();
            last.block += Thrift::DEPTH;
        });
    }

    fn records(&self) -> Vec<LaneRecord> {
        let logs = LaneLog::open_all(&Journal::open(self.records.path()).unwrap()).unwrap();
        logs.iter().map(LaneLog::get).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_jobs_in_a_row_are_computed_on_a_disk_of_a_tenth_of_their_files() {
    let world = World::new(50).await;
    let budget = world.all().await / 10;
    let process = world.start(budget).await;
    let mut sizes = Vec::new();
    for job in 1..=50 {
        world.begin(job);
        world.claimed().await;
        assert_eq!(process.owners().await, [Owner::Lane(lane_of(job))]);
        assert!(process.store.room().await.unwrap() < budget);
        world.settle(job);
        until(|| async { process.owners().await.is_empty() }).await;
        assert_eq!(process.store.room().await.unwrap(), budget);
        sizes.push(world.disk.path().join("blocks.redb").metadata().unwrap().len());
    }
    assert!(sizes[10..].iter().all(|size| *size <= sizes[10]), "the disk stays as it was: {sizes:?}");
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_what_a_running_job_needs_and_lets_go_of_what_ended_meanwhile() {
    let world = World::new(2).await;
    let process = world.start(LIMIT).await;
    world.begin(1);
    world.claimed().await;
    let (running, unknown) = (Owner::Lane(lane_of(1)), Owner::Ward(lane_of(99)));
    process.stop().await;

    // A lane that is not recorded has files, as if its record were lost; the running one's are nobody's, as on a disk
    // from before owners were recorded.
    let process = world.start(LIMIT).await;
    process.store.of(unknown).put(Bytes::from_static(b"of no lane")).await.unwrap();
    process.store.of(running).release().await.unwrap();
    process.stop().await;
    let process = world.start(LIMIT).await;
    until(|| async { process.owners().await == [running] }).await;
    // Claims that become final meanwhile let go of states: what the record names is looked at when nobody changes it.
    process.stop().await;
    let logs = LaneLog::open_all(&Journal::open(world.records.path()).unwrap()).unwrap();
    let record = logs[0].get();
    assert!(record.files().len() > 2, "states and inputs: {:?}", record.files());
    let (store, stop) = world.open(LIMIT).await;
    for name in record.files() {
        let cid = name.parse().unwrap();
        store.of(Owner::Nobody).unpin(&cid).await.unwrap();
        assert!(store.has(&cid).await.unwrap(), "the lane's record names {name}");
    }
    stop.cancel();
    drop((store, logs));

    world.settle(1);
    let process = world.start(LIMIT).await;
    until(|| async { process.owners().await.is_empty() }).await;
    world.begin(2);
    world.claimed().await;
    assert_eq!(process.owners().await, [Owner::Lane(lane_of(2))]);
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_of_a_lane_goes_once_its_job_was_settled_long_ago() {
    let world = World::new(1).await;
    let process = world.start(LIMIT).await;
    world.begin(1);
    world.claimed().await;
    world.settle(1);
    until(|| async { world.records()[0].settled_at.is_some() }).await;
    process.stop().await;
    let process = world.start(LIMIT).await;
    assert!(world.records()[0].over, "a reorganisation may undo the settlement");
    let before = world.records();
    world.pass();
    until(|| async { world.records().is_empty() }).await;
    process.stop().await;

    // Of a version that did not write down when, of a job that no event tells of any more.
    LaneLog::open(Journal::open(world.records.path()).unwrap(), LaneRecord { settled_at: None, ..before[0].clone() })
        .unwrap();
    world.chain.with(|ledger| ledger.told = Some(Vec::new()));
    let process = world.start(LIMIT).await;
    until(|| async { world.records()[0].settled_at.is_some() }).await;
    world.chain.with(|ledger| ledger.tell(Event::JobClosing { job: JobId(99), convicted: false }));
    world.pass();
    until(|| async { world.records().is_empty() }).await;
    process.stop().await;
}
