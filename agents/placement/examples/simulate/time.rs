//! How long planning takes, on one thread; and what a large fleet loses by being thinned out.

use std::time::Instant;

use tensorlink_placement::constraints::{Constraints, Replicas};
use tensorlink_placement::fleet::Fleet;
use tensorlink_placement::generate::{World, model};
use tensorlink_placement::model::Kind;
use tensorlink_placement::objective::Objective;
use tensorlink_placement::plan::Chain;
use tensorlink_placement::proximity::Proximity;
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
    println!("\n10,000 nodes by coordinates: cost by the links as they are. Rounds measure the hops of the plan.\n");
    println!(
        "| objective | seed | no round | {ROUNDS} rounds | 1,024 searched, {ROUNDS} rounds |\n|---|---|---|---|---|"
    );
    for (objective, kind) in ASKED {
        for seed in 1..=3 {
            let world = World::generate(seed, 10_000);
            let costs = [(0, 256), (ROUNDS, 256), (ROUNDS, 1_024)].map(|(rounds, searched)| {
                let mut fleet = world.fleet();
                let mut least = f64::INFINITY;
                for _ in 0..=rounds {
                    let request = Request { searched, ..Request::new(&fleet, &model, kind, objective) };
                    let Some(chain) =
                        place(Strategy::Best, &request).ok().and_then(|plan| plan.chains.into_iter().next())
                    else {
                        break;
                    };
                    least = least.min(objective.cost(&crate::liars::truly(&world, &model, kind, &chain)));
                    measure(&world, &mut fleet, &chain);
                }
                least
            });
            let [none, some, more] = costs.map(|cost| format!("{:.3}", cost / costs[2]));
            println!("| {objective} | {seed} | {none} | {some} | {more} |");
        }
    }
}

/// Rounds in which the hops of a plan are measured.
const ROUNDS: usize = 4;

/// Adds what is measured between all nodes of a chain.
fn measure(world: &World, fleet: &mut Fleet, chain: &Chain) {
    let Proximity::Coordinates { measured, .. } = &mut fleet.proximity else { return };
    for from in &chain.0 {
        for to in chain.0.iter().filter(|to| to.node != from.node) {
            measured.insert((from.node as u32, to.node as u32), world.link(from.node, to.node));
        }
    }
}
