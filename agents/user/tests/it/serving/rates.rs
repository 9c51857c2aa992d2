//! How fast workers are, by their answers.

use tensorlink_model::Plan;
use tensorlink_user::serving::Boundaries;

use crate::serving::worker::Manner;
use crate::serving::world::{TEXT, World, compute};
use crate::support::identity;

#[tokio::test]
async fn a_workers_speed_is_told_by_texts_that_take_it_much_longer_than_others() {
    let world = World::encoder(1).await;
    let pipeline = world.open().await;
    let of_first = || pipeline.rates().into_iter().find(|(worker, _)| *worker == identity(1).address());
    compute(&pipeline, &TEXT[..1]).await.unwrap();
    world.workers[0].set(Manner::Slow(100));
    for _ in 0..3 {
        compute(&pipeline, &TEXT).await.unwrap();
    }
    assert_eq!(of_first(), None, "three answers are not enough");
    compute(&pipeline, &TEXT).await.unwrap();
    let (_, rate) = of_first().unwrap();
    let plans: Vec<Plan> = world.stages.iter().map(|(plan, _)| plan.clone()).collect();
    let boundaries = Boundaries::new(&plans).unwrap();
    let most = boundaries.multiply_adds(0) as f64 * TEXT.len() as f64 / 0.1;
    // What any question takes is left out, and the machine may be busy.
    assert!((most * 0.1..most * 2.0).contains(&rate), "{rate} of {most}");
    assert_eq!((pipeline.setting(), boundaries.multiply_adds(2)), (boundaries.setting(), 0));
    pipeline.close().await;
}
