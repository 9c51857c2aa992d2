//! As many chains as pay.

use std::time::Instant;

use tensorlink_placement::constraints::{Constraints, Replicas};
use tensorlink_placement::generate::{World, model};
use tensorlink_placement::model::Kind;
use tensorlink_placement::objective::Objective;
use tensorlink_placement::{Request, Strategy, place};

use crate::table::{low, quantile};

pub(crate) fn run() {
    println!("throughput of all chains / that of the rule's whole fleet: median (5th percentile, least)\n");
    println!("| nodes | model | seeds | chains | / parallax | / petals | seconds |\n|---|---|---|---|---|---|---|");
    for (nodes, name, seeds) in [
        (100, "70B int4", 12),
        (100, "120B int4", 12),
        (300, "70B int4", 4),
        (300, "120B int4", 4),
        (1_000, "70B int4", 2),
        (1_000, "120B int4", 2),
    ] {
        let Some(model) = model(name) else { continue };
        let (mut counts, mut parallax, mut petals, mut times) = (vec![], vec![], vec![], vec![]);
        for seed in 1..=seeds {
            let fleet = World::generate(seed, nodes).fleet();
            let constraints = Constraints { replicas: Replicas::AsPays, ..Constraints::default() };
            let request = Request { constraints, ..Request::new(&fleet, &model, Kind::Prefill, Objective::Throughput) };
            let start = Instant::now();
            let Ok(plan) = place(Strategy::Best, &request) else { continue };
            times.push(start.elapsed().as_secs_f64());
            let figures = plan.chains.iter().filter_map(|chain| request.figures(chain).ok());
            let all: f64 = figures.map(|figures| figures.throughput()).sum();
            let (theirs, swarm) = request.others_throughput();
            counts.push(plan.chains.len() as f64);
            parallax.push(all / theirs);
            petals.push(all / swarm);
        }
        let (count, time) = (quantile(&counts, 0.5), quantile(&times, 0.5));
        println!("| {nodes} | {name} | {seeds} | {count} | {} | {} | {time:.2} |", low(&parallax), low(&petals));
    }
}
