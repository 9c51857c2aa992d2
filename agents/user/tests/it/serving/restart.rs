//! A gateway that starts again while some lanes cannot be taken up: the others serve.

use std::time::Duration;

use tensorlink_types::Lane;
use tensorlink_user::serving::OpenError;

use crate::serving::world::{TEXT, World, compute};
use crate::support::JOB;
use crate::support::serving::LONGEST;

/// In the order of [`World::workers`]: stage 1 of the first replica, and of the second.
const SPOILT: (usize, Lane) = (1, Lane { job: JOB, stage: 1, replica: 0 });
const OTHER: (usize, Lane) = (3, Lane { job: JOB, stage: 1, replica: 1 });

/// Two replicas; every lane has a voucher that fills its first epoch, and one of the second.
async fn served() -> World {
    let world = World::encoder(2).await;
    let pipeline = world.open().await;
    let texts = 2 * (16 * LONGEST / 4 + 1);
    for _ in 0..texts {
        compute(&pipeline, &TEXT).await.unwrap();
    }
    pipeline.close().await;
    assert_eq!(world.paid(), [2 * texts; 4]);
    world
}

/// What the lane redeems, though it has taken a voucher for more, and begun the next epoch at that.
fn redeems_early(world: &World, (worker, lane): (usize, Lane)) {
    let first = world.workers[worker].with(|inner| inner.vouchers[0].clone());
    world.chain.with(|ledger| ledger.redeemed.insert(lane, (first, 1)));
}

/// Opened again, texts go through the three lanes that are well, and nobody is asked or paid in the fourth.
async fn serves_without(world: &World, spoilt: usize) {
    let before = world.paid();
    let seen = |world: &World| world.workers[spoilt].with(|inner| (inner.advances.len(), inner.vouchers.len()));
    let asked = seen(world);
    let pipeline = world.open().await;
    assert!(pipeline.alive());
    for _ in 0..4 {
        assert_eq!(compute(&pipeline, &TEXT).await.unwrap(), world.due(&TEXT));
    }
    pipeline.close().await;
    assert_eq!(seen(world), asked);
    let gained: Vec<u32> = world.paid().iter().zip(before).map(|(now, before)| now - before).collect();
    assert_eq!(gained, [8, 0, 8, 16]);
}

#[tokio::test]
async fn a_lane_that_redeemed_what_it_should_not_keeps_no_other_from_serving() {
    let world = served().await;
    redeems_early(&world, SPOILT);
    serves_without(&world, SPOILT.0).await;
    // A stage of which nobody is left cannot serve.
    redeems_early(&world, OTHER);
    let error = world.open_as(0x55, world.folder.path(), &world.view).await.unwrap_err();
    assert!(matches!(error, OpenError::Account { lane, .. } if lane == SPOILT.1), "{error}");
    // What was undone does no harm any more.
    world.chain.with(|ledger| ledger.redeemed.clear());
    let pipeline = world.open().await;
    let asked = world.workers[SPOILT.0].with(|inner| inner.advances.len());
    for _ in 0..2 {
        compute(&pipeline, &TEXT).await.unwrap();
    }
    assert_eq!(world.workers[SPOILT.0].with(|inner| inner.advances.len()), asked + 1);
    tokio::time::timeout(Duration::from_secs(20), pipeline.close()).await.unwrap();
}

#[tokio::test]
async fn a_lane_whose_account_is_not_readable_keeps_no_other_from_serving() {
    let world = served().await;
    let spoil = |lane: Lane| {
        let file = format!("account-{}-{}-{}.json", lane.job, lane.stage, lane.replica);
        let path = world.folder.path().join(file);
        assert!(path.exists());
        std::fs::write(path, "{").unwrap();
    };
    spoil(SPOILT.1);
    serves_without(&world, SPOILT.0).await;
    spoil(OTHER.1);
    let error = world.open_as(0x55, world.folder.path(), &world.view).await.unwrap_err();
    assert!(matches!(error, OpenError::Journal(_)), "{error}");
}
