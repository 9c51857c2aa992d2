//! Stages train together over in-memory streams, hold each other to what they sent, and recover from losing each other.

#[path = "../../node/tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{
    CONTRACTS, Hub, KEY, MemoryChain, MemoryNet, MemoryStore, STEPS, USER, identity, job_view, lane, shards,
};
use tensorlink_graph::Reference;
use tensorlink_node::bounds::{Bounds, Excess};
use tensorlink_node::interval::{Outcome, Span};
use tensorlink_node::ports::{Duplex, Net, Protocol, Store};
use tensorlink_node::replay::Replay;
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::frame::{self, Frame, Hello, SignedLog};
use tensorlink_node::wire::gossip::Progress;
use tensorlink_node::{Roster, files, wire};
use tensorlink_proof::commit::logs::BoundaryLists;
use tensorlink_types::Address;
use tensorlink_types::abi::{Claim, EdgeLog};
use tensorlink_worker::boundary::{ExchangeError, Neighbour, Neighbours};
use tensorlink_worker::desk::Desk;
use tensorlink_worker::lane::LaneTask;
use tensorlink_worker::link::{Link, LinkError};
use tensorlink_worker::record::{LaneLog, LaneRecord};
use tensorlink_worker::{Context, WorkerConfig};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

struct Stage {
    log: Arc<LaneLog>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

struct World {
    shards: Vec<Arc<Shard>>,
    chain: Arc<MemoryChain>,
    store: Arc<MemoryStore>,
    hub: Arc<Hub>,
    folders: Vec<tempfile::TempDir>,
    intervals: u32,
}

fn address(stage: usize) -> Address {
    identity(stage as u8 + 1).address()
}

impl World {
    fn new(stages: usize, intervals: u32) -> Self {
        let shards = shards(stages);
        let workers: Vec<_> = (0..stages).map(address).collect();
        let chain = MemoryChain::new(job_view(stages as u16, intervals), &workers, &shards);
        let folders = (0..stages).map(|_| tempfile::tempdir().unwrap()).collect();
        Self { shards, chain, store: Arc::default(), hub: Arc::default(), folders, intervals }
    }

    /// Starts the process of a stage, on the disk that an earlier one left.
    async fn start(&self, stage: usize) -> Stage {
        let (chain, store, hub) = (self.chain.clone(), self.store.clone(), self.hub.clone());
        let ports = support::ports(stage as u8 + 1, chain, store, hub, self.folders[stage].path());
        let journal = ports.journal.clone();
        let desk = Desk::default();
        tokio::spawn(desk.clone().run(ports.net.accept(Protocol::Tensor).await.unwrap()));
        let number = stage as u16;
        let context = Arc::new(Context {
            ports,
            config: WorkerConfig { memory: 1 << 30, max_lanes: 1, price_per_gmac: 1, max_stake: 100, credit: None },
            engine: Arc::new(|| Ok(Reference)),
            roster: Arc::new(Roster::new(address(stage))),
            desk,
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

    async fn train(&self) -> Vec<Vec<Claim>> {
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
}

fn claims_of(log: &LaneLog) -> Vec<Claim> {
    log.get().intervals.into_values().map(|interval| interval.claim).collect()
}

async fn until(log: &LaneLog, next: u32) {
    let mut changes = log.watch();
    while log.get().next < next {
        changes.changed().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_stages_train_and_their_logs_agree() {
    let world = World::new(3, 2);
    let mut stages = Vec::new();
    for stage in 0..3 {
        stages.push(world.start(stage).await);
    }
    let mut records = Vec::new();
    for stage in stages {
        tokio::time::timeout(Duration::from_secs(20), stage.task).await.unwrap().unwrap();
        records.push(stage.log.get());
    }
    for interval in 0..2 {
        for pair in records.windows(2) {
            let (a, b) = (&pair[0].intervals[&interval].logs, &pair[1].intervals[&interval].logs);
            assert_eq!((a.toNext, a.fromNext), (b.fromPrevious, b.toPrevious));
        }
    }
    // What is on disk repeats to what was claimed.
    for (record, shard) in records.iter().zip(&world.shards) {
        let interval = &record.intervals[&1];
        let state = world.store.get(&interval.state.parse().unwrap(), &[], 1 << 30).await.unwrap();
        let inputs = world.store.get(&interval.inputs.parse().unwrap(), &[], 1 << 30).await.unwrap();
        let state = files::split(&state, shard.program.state.iter().map(|slot| &slot.ty)).unwrap();
        let span = Span { first_step: STEPS, steps: STEPS };
        let replay = Replay { shard: shard.clone(), lineage: KEY.into(), span, state, inputs };
        let outcome: Outcome = replay.outcome(Reference).unwrap();
        assert_eq!((outcome.state_root, outcome.logs.roots()), (interval.claim.newState, interval.logs.clone()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stage_that_was_lost_resumes_and_the_claims_are_the_same() {
    let expected = World::new(2, 5).train().await;
    let world = World::new(2, 5);
    let (first, second) = (world.start(0).await, world.start(1).await);
    until(&second.log, 2).await;
    second.stop.cancel();
    second.task.await.unwrap();
    let second = world.start(1).await;
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, first.task).await.unwrap().unwrap();
    tokio::time::timeout(limit, second.task).await.unwrap().unwrap();
    assert_eq!([claims_of(&first.log), claims_of(&second.log)], [expected[0].clone(), expected[1].clone()]);
}

/// Bounds that the first interval exceeds already, whatever its loss.
const NONE_STAYS_WITHIN: Bounds = Bounds { max_saturation: None, max_loss: Some(1e-6) };

impl World {
    /// What a stage has published of itself.
    fn reports(&self, stage: usize) -> Vec<Progress> {
        let published = self.hub.published.lock().unwrap();
        let own = published.iter().filter(|(by, _)| *by == address(stage));
        own.map(|(_, message)| wire::decode("progress", message).unwrap()).collect()
    }

    /// Stops the process of a stage, and starts it again on the same disk.
    async fn restart(&self, number: usize, stage: Stage) -> Stage {
        stage.stop.cancel();
        stage.task.await.unwrap();
        self.start(number).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_leaves_its_bounds_claims_what_it_has_and_goes_no_further() {
    let expected = World::new(3, 5).train().await;
    let mut world = World::new(3, 5);
    // Only the last stage has a loss.
    for shard in &mut world.shards {
        *shard = Arc::new(Shard { bounds: NONE_STAYS_WITHIN, ..(**shard).clone() });
    }
    let mut stages = Vec::new();
    for stage in 0..3 {
        stages.push(world.start(stage).await);
    }
    let first_only = |stages: &[Stage]| {
        for (stage, expected) in stages.iter().zip(&expected) {
            assert_eq!((stage.log.get().next, claims_of(&stage.log).as_slice()), (1, &expected[..1]));
            assert!(!stage.task.is_finished(), "it waits for its user");
        }
    };
    for stage in &stages {
        until(&stage.log, 1).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    first_only(&stages);
    let halt = stages[2].log.get().halted.unwrap();
    assert!(matches!(halt.excess, Excess::Exploded { loss, most } if loss > most && halt.readings.loss == Some(loss)));
    assert!(stages[..2].iter().all(|stage| stage.log.get().halted.is_none()));

    // A kill changes nothing, be it of that lane or of a neighbour.
    for (number, at) in [(2, 2), (1, 1)] {
        let stage = stages.remove(at);
        stages.insert(at, world.restart(number, stage).await);
    }
    // Not even one that loses the interval: it is repeated.
    let lost = stages.remove(0);
    lost.stop.cancel();
    lost.task.await.unwrap();
    world.folders[0] = tempfile::tempdir().unwrap();
    stages.insert(0, world.start(0).await);
    tokio::time::timeout(Duration::from_secs(30), until(&stages[0].log, 1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    first_only(&stages);
    assert_eq!(stages[2].log.get().halted, Some(halt));

    // It says so as long as the job runs, for who follows it only later.
    let told = |world: &World| {
        let reports = world.reports(2);
        assert!(reports.iter().all(|report| report.step == STEPS && report.loss == halt.readings.loss), "{reports:?}");
        assert!(reports.iter().all(|report| report.halted == Some(halt.excess)), "{reports:?}");
        reports.len()
    };
    let before = told(&world);
    let again = async {
        while told(&world) <= before {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.unwrap();
    assert!(world.reports(0).iter().chain(&world.reports(1)).all(|report| report.halted.is_none()));
    for stage in stages {
        stage.stop.cancel();
        tokio::time::timeout(Duration::from_secs(5), stage.task).await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_are_of_no_consequence_in_the_last_interval() {
    let mut world = World::new(2, 1);
    let last = &mut world.shards[1];
    *last = Arc::new(Shard { bounds: NONE_STAYS_WITHIN, ..(**last).clone() });
    assert_eq!(world.train().await, World::new(2, 1).train().await);
    assert!(world.reports(1).iter().all(|report| report.halted.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stage_ends_when_stopped_although_its_neighbour_is_silent() {
    let world = World::new(2, 5);
    let first = world.start(0).await;
    // The second stage meets the first and then says nothing.
    let silent = MemoryNet { own: address(1), hub: world.hub.clone() };
    let mut streams = silent.accept(Protocol::Tensor).await.unwrap();
    let (_, mut stream) = streams.recv().await.unwrap();
    let hello = |next_interval| Frame::Hello(Hello { job: support::JOB, replica: 0, stage: 1, next_interval });
    frame::write(&mut stream, &hello(0)).await.unwrap();
    assert!(matches!(frame::read(&mut stream, 0).await.unwrap(), Frame::Hello(_)));
    tokio::time::sleep(Duration::from_millis(50)).await;
    first.stop.cancel();
    tokio::time::timeout(Duration::from_secs(1), first.task).await.unwrap().unwrap();
    // The stream closes, so the blocked thread has ended.
    let drained = async { while frame::read(&mut stream, 1 << 20).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(5), drained).await.unwrap();
}

/// Its neighbour has claimed everything and left for good.
#[tokio::test(flavor = "multi_thread")]
async fn a_stage_that_is_started_again_after_its_last_interval_waits_for_nobody() {
    let world = World::new(2, 2);
    let (first, second) = (world.start(0).await, world.start(1).await);
    first.task.await.unwrap();
    second.task.await.unwrap();
    let again = world.start(0).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!again.task.is_finished(), "the neighbour has not claimed: it may have to repeat the interval");
    again.stop.cancel();
    again.task.await.unwrap();

    let claim = claims_of(&second.log)[1].clone();
    world.chain.with(|l| l.claims.insert((1, 1), (claim, 201)));
    for _ in 0..2 {
        let again = world.start(0).await;
        tokio::time::timeout(Duration::from_secs(5), again.task).await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neighbour_that_wants_to_begin_long_before_changes_nothing() {
    let world = World::new(2, 3);
    let (first, second) = (world.start(0).await, world.start(1).await);
    first.task.await.unwrap();
    second.task.await.unwrap();
    let log = first.log;
    // All but the last interval are final and forgotten; the second stage begins anew from an empty disk.
    log.update(|record| record.intervals.retain(|number, _| *number == 2)).unwrap();
    let before = log.get();
    let mut world = world;
    world.folders[1] = tempfile::tempdir().unwrap();
    let (first, second) = (world.start(0).await, world.start(1).await);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!first.task.is_finished(), "it goes on asking");
    assert_eq!(first.log.get(), before);
    first.stop.cancel();
    second.stop.cancel();
    first.task.await.unwrap();
    second.task.await.unwrap();
}

/// The second stage as somebody plays it who answers every tensor with one of this mantissa: the log that the first one signs to it, if
/// it signs any before it leaves.
async fn play(world: &World, mantissa: u8) -> Option<EdgeLog> {
    let ty = world.shards[0].program.from_next[0].clone();
    let net = MemoryNet { own: address(1), hub: world.hub.clone() };
    let mut streams = net.accept(Protocol::Tensor).await.unwrap();
    let (_, mut stream) = streams.recv().await.unwrap();
    let hello = Hello { job: support::JOB, replica: 0, stage: 1, next_interval: 0 };
    frame::write(&mut stream, &Frame::Hello(hello)).await.unwrap();
    loop {
        match frame::read(&mut stream, 1 << 20).await {
            Ok(Frame::Tensor { step, micro_batch, .. }) => {
                let width = ty.width().bytes();
                let mantissas = (0..ty.elements()).flat_map(|_| [mantissa].into_iter().chain(vec![0; width - 1]));
                let data = mantissas.collect::<Vec<u8>>().into();
                // A worker that has seen enough does not listen any more.
                let _ = frame::write(&mut stream, &Frame::Tensor { step, micro_batch, data }).await;
            }
            Ok(Frame::SignedLog(signed)) => return Some(signed.log),
            Ok(Frame::Hello(_)) => {}
            Err(_) => return None,
        }
    }
}

/// A neighbour that leaves with a signed log in its hand, and sends other tensors when the interval is repeated, gets no second one: two
/// would convict who signed them. Not even after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_else_is_ever_signed_about_an_interval() {
    let world = World::new(2, 1);
    let first = world.start(0).await;
    let signed = play(&world, 1).await.unwrap();
    assert_eq!(play(&world, 2).await, None);
    assert_eq!(play(&world, 1).await.as_ref(), Some(&signed), "what was computed then may be said again");
    first.stop.cancel();
    first.task.await.unwrap();
    let first = world.start(0).await;
    assert_eq!(play(&world, 2).await, None);
    assert_eq!(play(&world, 1).await, Some(signed));
    assert_eq!(first.log.get().next, 0, "nothing is claimed without the neighbour's word");
    first.stop.cancel();
    first.task.await.unwrap();
}

/// Two ends of a link between stage 0 (address 1) and stage 1 (address 2).
fn ends(stop: &CancellationToken) -> (Neighbours, Link) {
    let (a, b) = tokio::io::duplex(1 << 16);
    let boxed = |stream| Box::new(stream) as Box<dyn Duplex>;
    let neighbour = Neighbour { address: address(1), link: Link::new(boxed(a), 1024, stop) };
    (Neighbours { next: Some(neighbour), ..Neighbours::default() }, Link::new(boxed(b), 1024, stop))
}

/// What stage 0 says to a log that stage 1 makes of the right one, and sends or shows on chain.
async fn exchange_by(
    chain: bool,
    signer: u8,
    change: impl FnOnce(&mut EdgeLog) + Send + 'static,
) -> Result<(), ExchangeError> {
    let (mut neighbours, mut theirs) = ends(&CancellationToken::new());
    let shard = shards(2).remove(0);
    tokio::task::spawn_blocking(move || {
        let logs: BoundaryLists = logs(&shard);
        let mut log =
            EdgeLog { job: 1, replica: 0, fromStage: 1, toStage: 0, interval: 4, root: logs.roots().fromNext };
        change(&mut log);
        let signature = identity(signer).sign(CONTRACTS.edge_log(&log)).unwrap().to_vec();
        let word = SignedLog { log, signature };
        if chain {
            neighbours.awaited.shown(word);
        } else {
            theirs.send_log(word).unwrap();
        }
        let result = neighbours.exchange_logs(lane(0), 4, &logs, &identity(1), &CONTRACTS).map(|_| ());
        let SignedLog { log, signature } = theirs.receive_log(std::future::pending()).unwrap();
        tensorlink_proof::commit::verify_signer(&signature, CONTRACTS.edge_log(&log), address(0)).unwrap();
        assert_eq!(log.root, logs.roots().toNext);
        result
    })
    .await
    .unwrap()
}

/// Logs of an interval of the first stage, of made-up roots.
fn logs(shard: &Shard) -> BoundaryLists {
    use tensorlink_proof::commit::{Edge, LogBuilder};
    let mut builder = LogBuilder::new(&shard.program, 1).unwrap();
    for edge in [Edge::ToNext, Edge::FromNext] {
        for micro_batch in 0..shard.program.micro_batches {
            let root = tensorlink_types::TensorRoot(tensorlink_types::B256::with_last_byte(micro_batch as u8));
            builder.record(edge, 0, micro_batch, root).unwrap();
        }
    }
    builder.finish().unwrap()
}

async fn exchange(signer: u8, change: impl FnOnce(&mut EdgeLog) + Send + 'static) -> Result<(), ExchangeError> {
    exchange_by(false, signer, change).await
}

#[tokio::test]
async fn a_word_that_the_neighbour_shows_on_chain_will_do() {
    exchange_by(true, 2, |_| {}).await.unwrap();
    assert!(matches!(exchange_by(true, 3, |_| {}).await, Err(ExchangeError::Signature { .. })), "another's key");
}

#[tokio::test]
async fn only_the_neighbours_own_signature_on_what_it_sent_is_taken() {
    exchange(2, |_| {}).await.unwrap();
    assert!(matches!(exchange(3, |_| {}).await, Err(ExchangeError::Signature { .. })), "another's key");
    assert!(matches!(exchange(2, |log| log.root.0[0] ^= 1).await, Err(ExchangeError::Different { .. })));
    assert!(matches!(exchange(2, |log| log.interval = 3).await, Err(ExchangeError::Different { .. })), "a replay");
}

#[tokio::test]
async fn malformed_and_oversized_frames_end_the_link() {
    for (bytes, what) in [
        ([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0], "oversized"),
        ([9; 16], "unknown"),
        ([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "an empty hello"),
    ] {
        let (mut theirs, ours) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut theirs, &bytes).await.unwrap();
        let mut link = Link::new(Box::new(ours), 1024, &CancellationToken::new());
        let result = tokio::task::spawn_blocking(move || link.receive_tensor(0, 0)).await.unwrap();
        assert!(matches!(result, Err(LinkError::Frame(_))), "{what}: {result:?}");
    }
}
