//! How fast workers are, by their answers.

use tensorlink_node::link::Link;
use tensorlink_node::price::multiply_adds;
use tensorlink_user::placing::Reach;

use crate::serving::worker::Manner;
use crate::serving::world::{TEXT, World, compute};
use crate::support::identity;
use crate::support::serving::{LONG, long_plans};

fn over(rate: f64) -> Reach {
    Reach { away: 0.0, link: Some(Link { to: rate, from: rate }) }
}

#[tokio::test]
async fn a_workers_speed_is_told_by_long_prompts() {
    let world = World::new(long_plans(), 1).await;
    let pipeline = world.open().await;
    let first = identity(1).address();
    let of_first = |reach: Option<Reach>| pipeline.rates(|_| reach).get(&first).map(|(rate, _)| *rate);
    let long = [1; LONG as usize];
    world.workers[0].set(Manner::Slow(200));
    compute(&pipeline, &TEXT).await.unwrap();
    for _ in 0..3 {
        compute(&pipeline, &long).await.unwrap();
    }
    assert!(!pipeline.timed().contains_key(&first), "three answers are not enough");
    compute(&pipeline, &long).await.unwrap();
    assert!(pipeline.timed().contains_key(&first));
    let whole = multiply_adds(&world.stages[0].0.program(LONG).unwrap()) as f64;
    let rate = of_first(Some(over(1e12))).unwrap();
    assert!((whole / 4.0..=whole / 0.2).contains(&rate), "{rate} of {}", whole / 0.2);
    // All of it may have been the link, of which half is believed.
    for reach in [over(1.0), Reach { away: 0.0, link: None }] {
        let half = of_first(Some(reach)).unwrap() / 2.0;
        assert!((half / rate - 1.0).abs() < 1e-3, "{half} of {rate}");
    }
    pipeline.close().await;
}

#[tokio::test]
async fn an_answer_that_was_held_up_does_not_count() {
    let world = World::new(long_plans(), 1).await;
    let pipeline = world.open().await;
    for _ in 0..6 {
        world.workers[0].set(Manner::Busy(1));
        world.workers[1].set(Manner::Busy(1));
        compute(&pipeline, &[1; LONG as usize]).await.unwrap();
    }
    assert!(pipeline.timed().is_empty());
    pipeline.close().await;
}
