//! How long planning takes, on one thread; and what a large fleet loses by being thinned out.

use std::time::Instant;

use tensorlink_placement::constraints::{Constraints, Replicas};
use tensorlink_placement::generate::{World, model};
use tensorlink_placement::model::Kind;
use tensorlink_placement::objective::Objective;
use tensorlink_placement::{Request, Strategy, place};

use crate::ASKED;
use crate::table::quantile;

pub(crate) fn run() {
    let Some(model) = model("70B int4") else { return };
    println!("| nodes | layers | objective | seconds, median | seconds, most |\n|---|---|---|---|---|");
    let timed = |called: &str, nodes: usize, requests: &dyn Fn(u64) -> f64, seeds: u64| {
        let times: Vec<f64> = (1..=seeds).map(requests).collect();
        println!("| {nodes} | 80 | {called} | {:.3} | {:.3} |", quantile(&times, 0.5), quantile(&times, 1.0));
    };
    for (nodes, seeds) in [(100, 9), (10_000, 3)] {
        for (objective, kind) in ASKED {
            let plan = |seed| {
                let fleet = World::generate(seed, nodes).fleet();
                let request = Request::new(&fleet, &model, kind, objective);
                let start = Instant::now();
                let planned = place(Strategy::Best, &request).is_ok();
                if planned { start.elapsed().as_secs_f64() } else { f64::NAN }
            };
            timed(&objective.to_string(), nodes, &plan, seeds);
        }
    }
    let packed = |seed| {
        let fleet = World::generate(seed, 100).fleet();
        let constraints = Constraints { replicas: Replicas::AsPays, ..Constraints::default() };
        let request = Request { constraints, ..Request::new(&fleet, &model, Kind::Prefill, Objective::Throughput) };
        let start = Instant::now();
        let planned = place(Strategy::Best, &request).is_ok();
        if planned { start.elapsed().as_secs_f64() } else { f64::NAN }
    };
    timed("as many chains as pay", 100, &packed, 5);
    println!("\n10,000 nodes by coordinates: cost by the links as they are, 256 nodes searched / 1,024 searched\n");
    println!("| objective | seeds 1 to 3 |\n|---|---|");
    for (objective, kind) in ASKED {
        let ratio = |seed| {
            let world = World::generate(seed, 10_000);
            let fleet = world.fleet();
            let cost = |searched| {
                let request = Request { searched, ..Request::new(&fleet, &model, kind, objective) };
                let chain = place(Strategy::Best, &request).ok()?.chains.into_iter().next()?;
                Some(objective.cost(&crate::liars::truly(&world, &model, kind, &chain)))
            };
            Some(cost(256)? / cost(1_024)?)
        };
        let ratios = (1..=3).map(|seed| format!("{:.3}", ratio(seed).unwrap_or(f64::NAN)));
        println!("| {objective} | {} |", ratios.collect::<Vec<_>>().join(", "));
    }
}
