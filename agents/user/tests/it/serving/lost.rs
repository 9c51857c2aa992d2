//! Which workers a pipeline has lost, and what becomes of texts then.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tensorlink_types::Address;
use tensorlink_user::serving::{Pipeline, Pipelines, TextError};

use crate::serving::worker::Manner;
use crate::serving::world::{TEXT, World, compute};
use crate::support::clock::Set;
use crate::support::{JOB, identity};

const BORNE: u64 = 30;

async fn open(world: &World) -> (Pipeline, Arc<Set>) {
    let clock = Arc::new(Set::default());
    let opened = world.open_at(clock.clone(), (0x55, world.folder.path(), &world.view)).await;
    (opened.unwrap(), clock)
}

fn lost(pipeline: &Pipeline) -> Vec<Address> {
    pipeline.lost(|_| false, (0, BORNE))
}

fn worker(key: u8) -> Address {
    identity(key).address()
}

#[tokio::test]
async fn a_stage_is_lost_with_the_last_of_its_workers() {
    let world = World::encoder(2).await;
    let pipeline = world.open().await;
    let gone = |keys: &[u8]| pipeline.lost(|address| keys.iter().any(|key| worker(*key) == address), (0, BORNE));
    assert!(gone(&[]).is_empty());
    // One of each stage: texts go by the others.
    assert!(gone(&[1, 4]).is_empty());
    assert_eq!(gone(&[2, 4]), [worker(2), worker(4)]);
    let spare = |keys: &[u8]| pipeline.spare(|address| keys.iter().any(|key| worker(*key) == address), (0, BORNE));
    assert_eq!((spare(&[]), spare(&[1, 4])), (vec![], vec![worker(1), worker(4)]));
    assert_eq!(spare(&[1, 2, 4]), [worker(1)], "of the other stage none is left");
    pipeline.close().await;
}

/// It is asked again after a while, and where nobody else is there.
#[tokio::test]
async fn texts_pass_by_a_worker_that_has_become_slow() {
    let world = World::encoder(2).await;
    let (pipeline, clock) = open(&world).await;
    let slow = &world.workers[2];
    let asked = || slow.with(|inner| inner.advances.len());
    let texts = async |count: u32| {
        let before = asked();
        for _ in 0..count {
            compute(&pipeline, &TEXT).await.unwrap();
        }
        asked() - before
    };
    assert_eq!(texts(64).await, 32, "they take turns");
    slow.set(Manner::Slow(400));
    let found = texts(40).await;
    assert!((1..=16).contains(&found), "{found} of its answers showed it");
    assert_eq!(texts(20).await, 0);
    clock.0.fetch_add(601, Ordering::Relaxed);
    slow.set(Manner::Honest);
    assert_eq!(texts(4).await, 1, "one answer says little");
    slow.set(Manner::Slow(1));
    world.workers[0].set(Manner::Declines);
    assert_eq!(texts(20).await, 20);
    world.workers[0].set(Manner::Honest);
    clock.0.fetch_add(31, Ordering::Relaxed);
    assert_eq!(texts(20).await, 10, "both are quick");
    pipeline.close().await;
}

#[tokio::test]
async fn a_worker_that_fails_every_text_is_lost_and_one_that_answers_in_between_is_not() {
    let world = World::encoder(1).await;
    let (pipeline, clock) = open(&world).await;
    world.workers[1].set(Manner::Declines);
    assert!(compute(&pipeline, &TEXT).await.is_err());
    clock.0.fetch_add(BORNE + 1, Ordering::Relaxed);
    assert!(lost(&pipeline).is_empty(), "one fault is no more than one, however long ago it was");
    world.workers[1].set(Manner::Honest);
    assert!(compute(&pipeline, &TEXT).await.is_ok());
    world.workers[1].set(Manner::Declines);
    for waited in [BORNE, 1] {
        assert!(compute(&pipeline, &TEXT).await.is_err());
        assert!(lost(&pipeline).is_empty());
        clock.0.fetch_add(waited, Ordering::Relaxed);
    }
    assert!(compute(&pipeline, &TEXT).await.is_err());
    assert_eq!(lost(&pipeline), [worker(2)]);
    let now = clock.0.load(Ordering::Relaxed);
    assert!(pipeline.lost(|_| false, (now - BORNE, BORNE)).is_empty(), "what failed before does not count");
    pipeline.close().await;
}

#[tokio::test]
async fn a_worker_that_answers_texts_is_there_whatever_else_is_heard_of_it() {
    let world = World::encoder(1).await;
    let (pipeline, clock) = open(&world).await;
    let gone = || pipeline.lost(|_| true, (0, BORNE));
    assert_eq!(gone(), [worker(1), worker(2)]);
    assert!(compute(&pipeline, &TEXT).await.is_ok());
    clock.0.fetch_add(BORNE, Ordering::Relaxed);
    assert!(gone().is_empty());
    clock.0.fetch_add(1, Ordering::Relaxed);
    assert_eq!(gone(), [worker(1), worker(2)]);
    pipeline.close().await;
}

#[tokio::test]
async fn a_busy_worker_is_not_lost() {
    let world = World::encoder(1).await;
    let (pipeline, clock) = open(&world).await;
    for _ in 0..2 {
        world.workers[1].set(Manner::Busy(u32::MAX));
        assert!(compute(&pipeline, &TEXT).await.unwrap_err().is_busy());
        clock.0.fetch_add(BORNE + 1, Ordering::Relaxed);
    }
    assert!(compute(&pipeline, &TEXT).await.is_err());
    assert!(lost(&pipeline).is_empty());
    pipeline.close().await;
}

#[tokio::test]
async fn a_whole_text_waits_for_its_worker_only_where_somebody_mends_the_pipeline() {
    let world = World::encoder(1).await;
    let pipelines = Pipelines::new(world.open().await, []);
    world.workers[1].set(Manner::Dies(0));
    let number = (JOB, pipelines.newest().reserve(1).unwrap().start);
    assert!(matches!(pipelines.compute(number, &TEXT).await, Err(TextError::Stage { stage: 1, .. })));
    pipelines.mend(true);
    // As often as it is asked the first time.
    world.workers[1].set(Manner::Loses(6));
    let number = (JOB, pipelines.newest().reserve(1).unwrap().start);
    let (output, receipts) = pipelines.compute(number, &TEXT).await.unwrap();
    assert_eq!(output, world.due(&TEXT));
    assert_ne!(receipts.text, number.1);
    assert_eq!(pipelines.receipts(JOB, number.1).unwrap(), Some(receipts));
    pipelines.newest().close().await;
    assert_eq!(world.paid(), [4, 4]);
}
