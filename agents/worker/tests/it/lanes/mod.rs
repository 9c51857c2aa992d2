//! Stages train together over in-memory streams, hold each other to what they sent, and recover from losing each other.

mod bounds;
mod exchange;
mod world;
mod writing;

use std::time::Duration;

use tensorlink_node::files;
use tensorlink_node::interval::{Outcome, Span};
use tensorlink_node::ports::{Net, Protocol, Store};
use tensorlink_node::replay::Replay;
use tensorlink_node::wire::frame::{self, Frame, Hello};
use tensorlink_program::Reference;
use tensorlink_types::abi::EdgeLog;
use world::{World, address, claims_of, until};

use crate::support::{JOB, KEY, MemoryNet, STEPS};

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

#[tokio::test(flavor = "multi_thread")]
async fn a_stage_ends_when_stopped_although_its_neighbour_is_silent() {
    let world = World::new(2, 5);
    let first = world.start(0).await;
    // The second stage meets the first and then says nothing.
    let silent = MemoryNet { own: address(1), hub: world.hub.clone() };
    let mut streams = silent.accept(Protocol::Tensor).await.unwrap();
    let (_, mut stream) = streams.recv().await.unwrap();
    let hello = |next_interval| Frame::Hello(Hello { job: JOB, replica: 0, stage: 1, next_interval });
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

/// The second stage as somebody plays it who answers every tensor with one of this mantissa: the log that the first one
/// signs to it, if it signs any before it leaves.
async fn play(world: &World, mantissa: u8) -> Option<EdgeLog> {
    let ty = world.shards[0].program.from_next[0].clone();
    let net = MemoryNet { own: address(1), hub: world.hub.clone() };
    let mut streams = net.accept(Protocol::Tensor).await.unwrap();
    let (_, mut stream) = streams.recv().await.unwrap();
    let hello = Hello { job: JOB, replica: 0, stage: 1, next_interval: 0 };
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

/// A neighbour that leaves with a signed log in its hand, and sends other tensors when the interval is repeated, gets
/// no second one: two would convict who signed them. Not even after a restart.
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
    assert_eq!(first.log.get().next, 0, "nothing is claimed without the neighbour's attestation");
    first.stop.cancel();
    first.task.await.unwrap();
}
