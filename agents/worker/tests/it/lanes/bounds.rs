//! Lanes whose training leaves the bounds of its user.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::bounds::{Bounds, Excess};
use tensorlink_node::shard::Shard;

use crate::lanes::world::{Stage, World, claims_of, until};
use crate::support::STEPS;

/// Bounds that the first interval exceeds already, whatever its loss.
const NONE_STAYS_WITHIN: Bounds = Bounds { max_saturation: None, max_loss: Some(1e-6) };

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
