//! Four to eight nodes: against the exact best, and against the rules of others.

use tensorlink_placement::generate::{UNSEEN, small};
use tensorlink_placement::model::Kind;
use tensorlink_placement::objective::{Objective, Weights};
use tensorlink_placement::{Request, Strategy, place};

use crate::ASKED;
use crate::table::{low, quantile};

const SEEDS: u64 = 500;
/// The exact best of a mix takes longer.
const MIXED: u64 = 100;

pub(crate) fn run() {
    for (called, first) in [("seeds 1 to 500", 1), ("500 unseen seeds", UNSEEN)] {
        println!(
            "{called}\n\n| objective | within 1 % of the exact best | worst | without a plan |\n|---|---|---|---|"
        );
        let mut rows = Vec::new();
        for (objective, kind) in ASKED {
            rows.push((objective, compare(objective, kind, first..first + SEEDS)));
        }
        let mix = Weights { latency: 1.0, bottleneck: 1.0, price: 500.0, energy: 0.001 };
        compare(Objective::Mix(mix), Kind::Decode, first..first + MIXED);
        println!(
            "\ncost of a rule / cost of the joint search: median (5th percentile, least; share that has a plan)\n"
        );
        let names: Vec<String> = rows.iter().map(|(objective, _)| objective.to_string()).collect();
        println!("| rule | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
        for (at, strategy) in Strategy::ALL.iter().enumerate().take(Strategy::ALL.len() - 1) {
            let cells = rows.iter().map(|(_, ratios)| {
                let found = ratios[at].iter().filter(|ratio| !ratio.is_nan()).count();
                format!("{}; {:.0} %", low(&ratios[at]), 100.0 * found as f64 / ratios[at].len() as f64)
            });
            println!("| {strategy} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        println!();
    }
}

/// Prints a row, and returns each rule's costs over that of the joint search.
fn compare(objective: Objective, kind: Kind, seeds: std::ops::Range<u64>) -> Vec<Vec<f64>> {
    let mut against = Vec::new();
    let mut rules = vec![Vec::new(); Strategy::ALL.len()];
    let mut none = 0;
    for seed in seeds {
        let (world, model) = small(seed);
        let fleet = world.fleet();
        let request = Request::new(&fleet, &model, kind, objective);
        let cost = |strategy| {
            let plan = place(strategy, &request).ok()?;
            Some(objective.cost(&request.figures(plan.chains.first()?).ok()?))
        };
        let Some(best) = cost(Strategy::Best) else {
            none += 1;
            continue;
        };
        let exact = request.exact(best * (1.0 - 1e-9)).and_then(|chain| request.figures(&chain).ok());
        against.push(exact.map_or(1.0, |figures| best / objective.cost(&figures)));
        for (ratios, strategy) in rules.iter_mut().zip(Strategy::ALL) {
            ratios.push(if strategy == Strategy::Best { 1.0 } else { cost(strategy).unwrap_or(f64::NAN) / best });
        }
    }
    let within = against.iter().filter(|ratio| **ratio <= 1.01).count() as f64 / against.len() as f64;
    let cases = against.len();
    println!(
        "| {objective} ({kind:?}) | {:.1} % of {cases} | {:.3} | {none} |",
        100.0 * within,
        quantile(&against, 1.0)
    );
    rules
}
