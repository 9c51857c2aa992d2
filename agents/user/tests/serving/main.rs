//! Texts through a serving job's workers: what is right is paid, and nothing else is.

mod decoder;
mod job;
mod restart;
#[path = "../../../node/tests/support/mod.rs"]
mod support;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use support::serving::{LONGEST, decoder_plans, plans, serving_view, user};
use support::{Hub, JOB, MemoryChain, identity};
use tensorlink_graph::Reference;
use tensorlink_graph::transformer::{Plan, StageRunner, tokens};
use tensorlink_node::ports::Clock;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::serving::ServingShard;
use tensorlink_num::Tensor;
use tensorlink_proof::commit::receipt_list;
use tensorlink_types::abi::JobKind;
use tensorlink_types::{ClaimId, Lane};
use tensorlink_user::serving::{Edges, LaneFault, OpenError, Pipeline, TextError};
use worker::{Manner, Worker, Wrong};

const STAGES: u16 = 2;
const TEXT: [u32; 4] = [3, 1, 4, 1];

/// Waits are over at once.
struct Hasty;

#[async_trait]
impl Clock for Hasty {
    fn now(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
    }

    async fn sleep(&self, _: Duration) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

struct World {
    hub: Arc<Hub>,
    chain: Arc<MemoryChain>,
    view: JobView,
    stages: Vec<(Plan, Vec<Tensor>)>,
    /// In the order of lanes.
    workers: Vec<Arc<Worker>>,
    folder: tempfile::TempDir,
}

impl World {
    async fn new(stages: Vec<(Plan, Vec<Tensor>)>, replicas: u16) -> Self {
        let hub = Arc::new(Hub::default());
        let view = JobView { replicas, ..serving_view(STAGES) };
        let shard = |(plan, constants): &(Plan, Vec<Tensor>)| {
            Arc::new(ServingShard::new(plan.clone(), constants.clone().into(), LONGEST).unwrap())
        };
        let shards: Vec<_> = stages.iter().map(shard).collect();
        let mut workers = Vec::new();
        for replica in 0..replicas {
            for stage in 0..STAGES {
                let (lane, key) = (Lane { job: JOB, stage, replica }, (1 + replica * STAGES + stage) as u8);
                workers.push(Worker::start(lane, key, shards[usize::from(stage)].clone(), &hub).await);
            }
        }
        let addresses: Vec<_> = (1..=workers.len()).map(|key| identity(key as u8).address()).collect();
        let chain = MemoryChain::serving(view.clone(), &addresses, &shards);
        Self { hub, chain, view, stages, workers, folder: tempfile::tempdir().unwrap() }
    }

    async fn encoder(replicas: u16) -> Self {
        Self::new(plans(), replicas).await
    }

    async fn open_as(&self, key: u8, folder: &Path, view: &JobView) -> Result<Pipeline, OpenError> {
        let mut ports = support::ports(key, self.chain.clone(), Arc::default(), self.hub.clone(), folder);
        ports.clock = Arc::new(Hasty);
        let plans: Vec<Plan> = self.stages.iter().map(|(plan, _)| plan.clone()).collect();
        Pipeline::open(ports, view, Edges::new(&plans).unwrap()).await
    }

    async fn open(&self) -> Pipeline {
        self.open_as(0x55, self.folder.path(), &self.view).await.unwrap()
    }

    /// What the model gives for a text.
    fn due(&self, text: &[u32]) -> Tensor {
        self.stages.iter().fold(tokens(text).unwrap(), |x, (plan, constants)| {
            StageRunner::new(Reference, plan.clone(), constants).unwrap().run(&x).unwrap()
        })
    }

    fn paid(&self) -> Vec<u32> {
        self.workers.iter().map(|worker| worker.paid()).collect()
    }
}

async fn compute(pipeline: &Pipeline, text: &[u32]) -> Result<Tensor, TextError> {
    let number = pipeline.reserve(1).unwrap().start;
    pipeline.compute(number, text).await.map(|(output, _)| output)
}

/// The fault of the only lane of a stage.
fn fault(error: TextError) -> (u16, LaneFault) {
    match error {
        TextError::Stage { stage, mut faults } => (stage, faults.pop().unwrap().1),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_text_is_computed_signed_for_and_paid() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    let number = pipeline.reserve(1).unwrap().start;
    let (output, receipts) = pipeline.compute(number, &TEXT).await.unwrap();
    assert_eq!(output, world.due(&TEXT));
    assert_eq!((receipts.job, receipts.text, receipts.tokens), (JOB, number, 4));
    assert_eq!(receipts.stages[0].logs.toNext, receipts.stages[1].logs.fromPrevious);
    assert_eq!(pipeline.receipts(number).unwrap(), Some(receipts.clone()));
    pipeline.close().await;
    for (stage, worker) in world.workers.iter().enumerate() {
        let voucher = worker.with(|inner| inner.vouchers.last().cloned()).unwrap();
        assert_eq!((voucher.epoch, voucher.tokens), (1, 4));
        assert_eq!(voucher.receipts, receipt_list(&[receipts.stages[stage].claim_id]).root());
    }
}

#[tokio::test]
async fn texts_at_once_are_all_paid_by_vouchers_in_the_workers_order() {
    let world = World::encoder(1).await;
    let pipeline = Arc::new(world.open().await);
    let numbers = pipeline.reserve(20).unwrap();
    let texts = numbers.map(|number| {
        let pipeline = pipeline.clone();
        tokio::spawn(async move { pipeline.compute(number, &TEXT[..1 + number as usize % 4]).await.unwrap().1.tokens })
    });
    let tokens: u32 = futures::future::join_all(texts).await.into_iter().map(Result::unwrap).sum();
    pipeline.close().await;
    assert_eq!(world.paid(), [tokens, tokens]);
}

#[tokio::test]
async fn a_wrong_receipt_is_refused_and_nobody_is_paid() {
    let all = [
        Wrong::Absent,
        Wrong::Tokens,
        Wrong::Logs,
        Wrong::Io,
        Wrong::State,
        Wrong::Text,
        Wrong::Stage,
        Wrong::Replica,
        Wrong::Job,
        Wrong::Signer,
        Wrong::Garbage,
    ];
    for wrong in all {
        for liar in 0..2 {
            let world = World::encoder(1).await;
            world.workers[liar].set(Manner::Signs(wrong));
            let pipeline = world.open().await;
            let (stage, fault) = fault(compute(&pipeline, &TEXT).await.unwrap_err());
            assert!(matches!(fault, LaneFault::Receipt(_)), "{wrong:?}: {fault}");
            assert_eq!(usize::from(stage), liar);
            assert_eq!(pipeline.receipts(0).unwrap(), None);
            pipeline.close().await;
            assert_eq!(world.paid(), [0, 0], "{wrong:?}");
        }
    }
}

#[tokio::test]
async fn rows_that_are_no_output_are_refused() {
    let world = World::encoder(1).await;
    world.workers[0].set(Manner::Short);
    let pipeline = world.open().await;
    let (_, fault) = fault(compute(&pipeline, &TEXT).await.unwrap_err());
    assert!(matches!(fault, LaneFault::Length { .. }), "{fault}");
    pipeline.close().await;
    assert_eq!(world.paid(), [0, 0]);
}

#[tokio::test]
async fn lost_answers_are_asked_for_again_and_paid_once() {
    let world = World::encoder(1).await;
    world.workers[1].set(Manner::Loses(2));
    let pipeline = world.open().await;
    assert_eq!(compute(&pipeline, &TEXT).await.unwrap(), world.due(&TEXT));
    pipeline.close().await;
    assert_eq!(world.workers[1].with(|inner| inner.advances.len()), 3);
    assert_eq!(world.paid(), [4, 4]);
}

#[tokio::test]
async fn a_receipt_that_never_arrived_is_listed_and_not_paid() {
    let world = World::encoder(1).await;
    world.workers[1].set(Manner::Loses(6));
    let pipeline = world.open().await;
    assert!(compute(&pipeline, &TEXT).await.is_err());
    assert_eq!(compute(&pipeline, &TEXT[..3]).await.unwrap(), world.due(&TEXT[..3]));
    pipeline.close().await;
    for worker in &world.workers {
        let (voucher, ids) = worker.with(|inner| {
            let ids: Vec<ClaimId> =
                inner.receipts.iter().map(|(claim, _)| support::CONTRACTS.claim_id(claim)).collect();
            (inner.vouchers.last().cloned().unwrap(), ids)
        });
        assert_eq!((ids.len(), voucher.tokens), (2, 3), "the first text was delivered to nobody");
        assert_eq!(voucher.receipts, receipt_list(&ids).root());
    }
}

#[tokio::test]
async fn a_dead_worker_ends_the_text_and_the_others_are_told() {
    let world = World::encoder(1).await;
    world.workers[1].set(Manner::Dead);
    let pipeline = world.open().await;
    let (stage, fault) = fault(compute(&pipeline, &TEXT).await.unwrap_err());
    assert!(stage == 1 && matches!(fault, LaneFault::Net(_)), "{fault}");
    assert!(!pipeline.alive());
    pipeline.close().await;
    assert_eq!(world.workers[0].with(|inner| inner.abandoned.clone()), [0]);
    assert_eq!(world.paid(), [0, 0]);
    // It comes back.
    world.workers[1].set(Manner::Honest);
    let pipeline = world.open().await;
    assert!(compute(&pipeline, &TEXT).await.is_ok() && pipeline.alive());
}

#[tokio::test]
async fn another_replica_takes_over() {
    for manner in [Manner::Dead, Manner::Declines, Manner::Signs(Wrong::Signer)] {
        let world = World::encoder(2).await;
        world.workers[1].set(manner);
        let pipeline = world.open().await;
        for text in 0..4u32 {
            assert_eq!(compute(&pipeline, &TEXT).await.unwrap(), world.due(&TEXT), "{text} {manner:?}");
        }
        pipeline.close().await;
        let paid = world.paid();
        assert_eq!((paid[0] + paid[2], paid[1], paid[3]), (16, 0, 16), "{manner:?}");
    }
}

#[tokio::test]
async fn busy_and_unpaid_workers_are_waited_for_and_paid() {
    let world = World::encoder(1).await;
    world.workers[0].set(Manner::Busy(3));
    world.workers[1].set(Manner::WantsMoney);
    let pipeline = world.open().await;
    for _ in 0..3 {
        assert_eq!(compute(&pipeline, &TEXT).await.unwrap(), world.due(&TEXT));
    }
    world.workers[0].set(Manner::Busy(1000));
    let error = compute(&pipeline, &TEXT).await.unwrap_err();
    assert!(error.is_busy(), "{error}");
    pipeline.close().await;
    assert_eq!(world.paid(), [12, 12]);
}

#[tokio::test]
async fn a_decoders_text_goes_token_by_token_and_survives_what_workers_forget() {
    let world = World::new(decoder_plans(), 1).await;
    let pipeline = world.open().await;
    let whole = world.due(&TEXT);
    let mut text = pipeline.begin(pipeline.reserve(1).unwrap().start).await.unwrap();
    let mut rows = Vec::new();
    for (at, token) in TEXT.iter().enumerate() {
        world.workers[at % 2].set(Manner::Forgets);
        let last = at + 1 == TEXT.len();
        let step = text.advance(&[*token], None, last).await.unwrap();
        assert_eq!(step.receipts.is_some(), last);
        rows.extend(step.output.to_bytes());
    }
    assert_eq!(rows, whole.to_bytes());
    assert!(matches!(text.advance(&[1], None, true).await, Err(TextError::Over)));
    pipeline.close().await;
    assert_eq!(world.paid(), [4, 4]);
}

#[tokio::test]
async fn a_replica_takes_over_in_the_middle_of_a_text_with_all_its_rows() {
    let world = World::new(decoder_plans(), 2).await;
    let pipeline = world.open().await;
    let mut text = pipeline.begin(0).await.unwrap();
    let first = text.advance(&TEXT[..2], None, false).await.unwrap().output.to_bytes();
    world.workers[0].set(Manner::Dead);
    let rest = text.advance(&TEXT[2..], None, true).await.unwrap();
    assert_eq!([first, rest.output.to_bytes()].concat(), world.due(&TEXT).to_bytes());
    assert_eq!(world.workers[2].with(|inner| inner.advances.clone()), [(0, 0, false), (0, 4, true)]);
    pipeline.close().await;
    assert_eq!(world.paid(), [0, 4, 4, 0]);
}

/// Rows are given before anybody signs: a stage that then does not sign right is computed again, by one that does, if there is one.
#[tokio::test]
async fn rows_without_a_receipt_are_computed_again_or_paid_to_nobody() {
    for replicas in 1..=2 {
        for wrong in [Wrong::Absent, Wrong::Signer, Wrong::Io] {
            let world = World::new(decoder_plans(), replicas).await;
            world.workers[0].set(Manner::Signs(wrong));
            let pipeline = world.open().await;
            let mut text = pipeline.begin(0).await.unwrap();
            let step = text.advance(&TEXT, None, true).await;
            if replicas == 2 {
                assert_eq!(step.unwrap().output, world.due(&TEXT), "{wrong:?}");
            } else {
                let (stage, fault) = fault(step.unwrap_err());
                assert!(stage == 0 && matches!(fault, LaneFault::Receipt(_)), "{wrong:?}: {fault}");
            }
            drop(text);
            pipeline.close().await;
            let due = if replicas == 2 { vec![0, 4, 4, 0] } else { vec![0, 0] };
            assert_eq!(world.paid(), due, "{wrong:?}");
        }
    }
}

#[tokio::test]
async fn a_replica_that_gives_other_rows_than_the_text_had_is_not_believed() {
    let world = World::new(decoder_plans(), 2).await;
    world.workers[2].set(Manner::Lies);
    let pipeline = world.open().await;
    let mut text = pipeline.begin(0).await.unwrap();
    text.advance(&TEXT[..2], None, false).await.unwrap();
    world.workers[0].set(Manner::Dead);
    let (stage, fault) = fault(text.advance(&TEXT[2..], None, true).await.unwrap_err());
    assert!(stage == 0 && matches!(fault, LaneFault::Changed), "{fault}");
    drop(text);
    pipeline.close().await;
    assert_eq!(world.paid(), [0; 4]);
}

#[tokio::test]
async fn a_text_that_is_dropped_is_abandoned_and_unpaid() {
    let world = World::new(decoder_plans(), 1).await;
    let pipeline = world.open().await;
    let mut text = pipeline.begin(0).await.unwrap();
    text.advance(&TEXT, None, false).await.unwrap();
    drop(text);
    pipeline.close().await;
    for worker in &world.workers {
        assert_eq!(worker.with(|inner| (inner.abandoned.clone(), inner.receipts.len())), (vec![0], 0));
    }
    assert_eq!(world.paid(), [0, 0]);
}

#[tokio::test]
async fn a_restart_keeps_accounts_numbers_and_receipts() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    let first = pipeline.reserve(1).unwrap().start;
    let (_, receipts) = pipeline.compute(first, &TEXT).await.unwrap();
    // Killed: the last vouchers may not have been sent.
    drop(pipeline);
    let pipeline = world.open().await;
    let second = pipeline.reserve(1).unwrap().start;
    assert!(second > first);
    pipeline.compute(second, &TEXT[..2]).await.unwrap();
    assert_eq!(pipeline.receipts(first).unwrap(), Some(receipts));
    pipeline.close().await;
    assert_eq!(world.paid(), [6, 6]);
    let sent = world.workers[0].with(|inner| inner.vouchers.len());
    let pipeline = world.open().await;
    while world.workers[0].with(|inner| inner.vouchers.len()) == sent {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    pipeline.close().await;
    assert_eq!(world.paid(), [6, 6], "the last voucher is sent again, and says the same");
    // Without its records the job cannot be served: what was signed is not known.
    for (stage, worker) in world.workers.iter().enumerate() {
        let voucher = worker.with(|inner| inner.vouchers.last().cloned()).unwrap();
        world.chain.with(|ledger| ledger.redeemed.insert(support::lane(stage as u16), (voucher, 1)));
        worker.end_epoch();
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let stale = world.open_as(0x55, elsewhere.path(), &world.view).await.unwrap_err();
    assert!(stale.to_string().contains("data directory"), "{stale}");
    // With them, what was redeemed is no more than what was signed.
    let pipeline = world.open().await;
    compute(&pipeline, &TEXT).await.unwrap();
}

/// An epoch pays for 16 longest texts; two are signed for that the chain does not have.
#[tokio::test]
async fn epochs_follow_each_other_and_wait_for_what_is_redeemed() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    let full = 16 * LONGEST;
    for _ in 0..(2 * full + 8) / 4 {
        compute(&pipeline, &TEXT).await.unwrap();
    }
    let paid = async |tokens: u32| {
        while world.paid() != [tokens, tokens] {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let redeem = |epoch: u32| {
        for (stage, worker) in world.workers.iter().enumerate() {
            let voucher = worker.with(|inner| inner.vouchers.iter().rfind(|voucher| voucher.epoch == epoch).cloned());
            let at = support::lane(stage as u16);
            world.chain.with(|ledger| ledger.redeemed.insert(at, (voucher.unwrap(), 1)));
        }
    };
    paid(2 * full).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(world.paid(), [2 * full; 2], "the rest waits");
    redeem(1);
    paid(2 * full + 8).await;
    for worker in &world.workers {
        let vouchers = worker.with(|inner| inner.vouchers.clone());
        let last = |epoch| vouchers.iter().rfind(|voucher| voucher.epoch == epoch).map(|v| (v.before, v.tokens));
        assert_eq!([last(1), last(2)], [Some((0, full)), Some((full, 2 * full))]);
        assert_eq!((last(3), last(4)), (Some((2 * full, 2 * full + 8)), None));
    }
    // A reorganisation undoes it, and the user starts again meanwhile.
    world.chain.with(|ledger| ledger.redeemed.clear());
    drop(pipeline);
    let pipeline = world.open().await;
    compute(&pipeline, &TEXT).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(world.paid(), [2 * full + 8; 2]);
    redeem(2);
    paid(2 * full + 12).await;
    pipeline.close().await;
}

/// A worker redeems what it has when the job closes, while vouchers are on their way to it.
#[tokio::test]
async fn an_epoch_that_was_redeemed_early_is_over_and_the_rest_is_of_the_next() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    compute(&pipeline, &TEXT).await.unwrap();
    while world.paid() != [4, 4] {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let ended: Vec<_> = world.workers.iter().map(|worker| worker.end_epoch()).collect();
    // Declined, for the epoch is over, and the chain does not say so yet.
    compute(&pipeline, &TEXT[..3]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(world.paid(), [4, 4]);
    for (stage, voucher) in ended.into_iter().enumerate() {
        world.chain.with(|ledger| ledger.redeemed.insert(support::lane(stage as u16), (voucher, 1)));
    }
    while world.paid() != [7, 7] {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for worker in &world.workers {
        let last = worker.with(|inner| inner.vouchers.last().cloned()).unwrap();
        assert_eq!((last.epoch, last.before, last.tokens), (2, 4, 7));
    }
    pipeline.close().await;
}

#[tokio::test]
async fn the_job_pays_for_so_many_tokens_and_no_more() {
    let mut world = World::encoder(1).await;
    world.view.intervals = 6;
    let pipeline = world.open().await;
    compute(&pipeline, &TEXT).await.unwrap();
    let (_, fault) = fault(compute(&pipeline, &TEXT).await.unwrap_err());
    assert!(matches!(fault, LaneFault::Account(_)), "{fault}");
    compute(&pipeline, &TEXT[..2]).await.unwrap();
    pipeline.close().await;
    assert_eq!(world.paid(), [6, 6]);
}

#[tokio::test]
async fn texts_that_the_job_does_not_compute_are_refused_before_any_worker_sees_them() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    for length in [0, LONGEST as usize + 1] {
        let error = compute(&pipeline, &vec![1; length]).await.unwrap_err();
        assert!(matches!(error, TextError::Length { longest: LONGEST, .. }), "{error}");
    }
    assert!(matches!(compute(&pipeline, &[1, 20]).await, Err(TextError::Token { token: 20, vocabulary: 20 })));
    let mut text = pipeline.begin(0).await.unwrap();
    assert!(matches!(text.advance(&[1], None, false).await, Err(TextError::Whole)));
    assert!(world.workers.iter().all(|worker| worker.with(|inner| inner.advances.is_empty())));
    pipeline.close().await;
    assert!(matches!(pipeline.begin(1).await, Err(TextError::Closed)));
}

#[tokio::test]
async fn only_a_running_serving_job_of_ours_is_opened() {
    let world = World::encoder(1).await;
    let open = async |key, change: fn(&mut JobView)| {
        let mut view = world.view.clone();
        change(&mut view);
        world.open_as(key, world.folder.path(), &view).await.err()
    };
    assert!(open(0x55, |_| ()).await.is_none());
    assert!(matches!(open(9, |_| ()).await, Some(OpenError::NotOurs { user: payer, .. }) if payer == user().address()));
    assert!(matches!(open(0x55, |view| view.kind = JobKind::Training).await, Some(OpenError::Training(JOB))));
    let closing = open(0x55, |view| view.state = JobState::Closing).await;
    assert!(matches!(closing, Some(OpenError::State { state: JobState::Closing, .. })));
    assert!(matches!(open(0x55, |view| view.stages = 3).await, Some(OpenError::Stages { files: 2, stages: 3, .. })));
}
