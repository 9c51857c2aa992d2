//! How fast workers are, by their answers.

use tensorlink_node::link::Link;
use tensorlink_node::price::multiply_adds;

use crate::serving::worker::Manner;
use crate::serving::world::{TEXT, World, compute};
use crate::support::identity;
use crate::support::serving::long_plans;

const LONG: [u32; 24] = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8];

#[tokio::test]
async fn a_workers_speed_is_told_by_texts_that_take_it_much_longer_than_others() {
    let world = World::new(long_plans(), 1).await;
    let pipeline = world.open().await;
    let (first, wide) = (identity(1).address(), Link { to: 1e12, from: 1e12 });
    let of_first = |link: Link| pipeline.rates(|_| Some(link)).get(&first).copied();
    compute(&pipeline, &TEXT[..1]).await.unwrap();
    world.workers[0].set(Manner::Slow(200));
    for _ in 0..3 {
        compute(&pipeline, &LONG).await.unwrap();
    }
    assert_eq!((pipeline.timed(), of_first(wide)), (vec![], None), "three answers are not enough");
    compute(&pipeline, &LONG).await.unwrap();
    assert!(pipeline.timed().contains(&first));
    let whole = multiply_adds(&world.stages[0].0.program(LONG.len() as u32).unwrap()) as f64;
    let rate = of_first(wide).unwrap();
    // What any question takes is left out, and the machine may be busy.
    assert!((whole / 0.2 * 0.1..whole / 0.2 * 2.0).contains(&rate), "{rate} of {}", whole / 0.2);
    assert_eq!(pipeline.rates(|_| None).len(), 0, "over a link that is not known nothing is");
    assert_eq!(of_first(Link { to: 1_000.0, from: 1e12 }), None, "what it took may have been the link");
    pipeline.close().await;
}

#[tokio::test]
async fn an_answer_that_was_held_up_does_not_count() {
    let world = World::new(long_plans(), 1).await;
    let pipeline = world.open().await;
    compute(&pipeline, &TEXT[..1]).await.unwrap();
    for _ in 0..6 {
        for worker in &world.workers {
            worker.set(Manner::Busy(1));
        }
        compute(&pipeline, &LONG).await.unwrap();
    }
    assert!(pipeline.timed().is_empty());
    pipeline.close().await;
}
