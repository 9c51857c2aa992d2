//! Fleets and models for figures and tests, each a function of a seed.
//!
//! | module | what lives there |
//! |---|---|
//! | [`world`] | fleets: devices, regions, links, liars, churn |
//! | [`mod@models`] | seven models |
//!
//! Figures are of the seeds 1 to 500, and of 500 from [`UNSEEN`] on, with which nothing was tuned.

pub mod models;
pub mod world;

use tensorlink_draws::Draws;

pub use models::{model, models};
pub use world::World;

use crate::model::{Kind, ModelProfile};

/// The first of the seeds that figures are checked with, and by which nothing was chosen.
pub const UNSEEN: u64 = 1_000_001;

/// The share of a small fleet's memory that its model takes at most: with more, few orders and cuts fit at all.
const FILLED: f64 = 0.7;

/// Four to eight nodes and a model that they hold; in four of five cases none of them holds it alone, where there is
/// such a model.
pub fn small(seed: u64) -> (World, ModelProfile) {
    let mut draws = Draws::of(seed, 5);
    let mut world = World::generate(seed, 4 + draws.below(5));
    let mut models = models();
    draws.shuffle(&mut models);
    let largest = world.nodes.iter().map(|node| node.free_bytes).fold(0.0, f64::max);
    let all: f64 = world.nodes.iter().map(|node| node.free_bytes).sum();
    let bytes = |model: &ModelProfile| model.bytes(Kind::Decode);
    if draws.unit() < 0.8 {
        models.sort_by_key(|model| bytes(model) <= largest);
    }
    if let Some(at) = models.iter().position(|model| bytes(model) <= FILLED * all) {
        return (world, models.swap_remove(at));
    }
    models.sort_by(|a, b| bytes(a).total_cmp(&bytes(b)));
    let smallest = models.swap_remove(0);
    world.grow(bytes(&smallest) / (FILLED * all));
    (world, smallest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proximity::Proximity;

    #[test]
    fn a_fleet_is_a_function_of_its_seed() {
        assert_eq!(small(7), small(7));
        assert_ne!(small(7), small(8));
        assert_eq!(World::generate(3, 50).fleet(), World::generate(3, 50).fleet());
    }

    #[test]
    fn every_fleet_is_valid_and_holds_its_model() {
        for seed in 1..=100 {
            let (world, model) = small(seed);
            assert!((4..=8).contains(&world.nodes.len()));
            assert_eq!(world.fleet().check(), Ok(()), "{seed}");
            let all: f64 = world.nodes.iter().map(|node| node.free_bytes).sum();
            assert!(model.bytes(Kind::Decode) <= 0.71 * all, "{seed}");
        }
    }

    #[test]
    fn links_are_not_the_same_both_ways() {
        let world = World::generate(1, 10);
        assert_ne!(world.link(0, 1).seconds, world.link(1, 0).seconds);
        assert!((world.link(0, 1).seconds / world.link(1, 0).seconds - 1.0).abs() < 0.5);
    }

    #[test]
    fn a_large_fleet_knows_coordinates_and_its_neighbours() {
        let world = World::generate(1, 1_200);
        let fleet = world.fleet();
        assert_eq!(fleet.check(), Ok(()));
        let Proximity::Coordinates { measured, .. } = &fleet.proximity else { panic!("a matrix") };
        assert!(measured.len() >= 1_200 * 16);
        let ((from, to), link) = measured.iter().next().expect("some are measured");
        assert_eq!(*link, world.link(*from as usize, *to as usize));
    }

    #[test]
    fn liars_claim_more_and_churn_replaces() {
        let world = World::generate(2, 200);
        let claimed = world.claimed(0.2, 3.0);
        let liars = claimed.iter().zip(&world.nodes).filter(|(said, is)| said != is).count();
        assert!((20..60).contains(&liars), "{liars}");
        let after = world.churned(0, 0.1);
        let gone = after.nodes.iter().zip(&world.nodes).filter(|(new, old)| new != old).count();
        assert!((8..40).contains(&gone), "{gone}");
        assert_eq!(after, world.churned(0, 0.1));
    }
}
