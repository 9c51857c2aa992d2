//! One chain of a hundred and more nodes.

use tensorlink_placement::generate::{World, model};
use tensorlink_placement::{Request, Strategy, place};

use crate::ASKED;
use crate::table::low;

pub(crate) fn run() {
    println!("cost of a rule / cost of the joint search: median (5th percentile, least)\n");
    println!("| nodes | model | seeds | objective | parallax | petals | rmw-smallest |\n|---|---|---|---|---|---|---|");
    for (nodes, name, seeds) in
        [(50, "70B int4", 20), (100, "70B int4", 20), (100, "120B int4", 20), (300, "120B int4", 6)]
    {
        let Some(model) = model(name) else { continue };
        for (objective, kind) in ASKED {
            let mut ratios = [vec![], vec![], vec![]];
            for seed in 1..=seeds {
                let fleet = World::generate(seed, nodes).fleet();
                let request = Request { searched: 300, ..Request::new(&fleet, &model, kind, objective) };
                let cost = |strategy| {
                    let plan = place(strategy, &request).ok()?;
                    Some(objective.cost(&request.figures(plan.chains.first()?).ok()?))
                };
                let Some(best) = cost(Strategy::Best) else { continue };
                for (ratios, strategy) in
                    ratios.iter_mut().zip([Strategy::Parallax, Strategy::Petals, Strategy::RmwSmallest])
                {
                    ratios.push(cost(strategy).unwrap_or(f64::NAN) / best);
                }
            }
            let [parallax, petals, smallest] = ratios.map(|ratios| low(&ratios));
            println!("| {nodes} | {name} | {seeds} | {objective} | {parallax} | {petals} | {smallest} |");
        }
    }
}
