//! α, β and γ of the score that a large fleet is thinned out by, while a twentieth of it leaves each round.

use tensorlink_placement::generate::{World, model};
use tensorlink_placement::model::Kind;
use tensorlink_placement::objective::Objective;
use tensorlink_placement::score::Score;
use tensorlink_placement::{Request, Strategy, place};

use crate::table::high;

const NODES: usize = 600;
const ROUNDS: u64 = 4;
const SEARCHED: usize = 96;
const LEAVING: f64 = 0.05;

pub(crate) fn run() {
    let Some(model) = model("70B int4") else { return };
    println!("{NODES} nodes, {SEARCHED} searched, {ROUNDS} rounds, 2 seeds, 5 % leave each round");
    println!("cost / cost with all nodes searched: median (95th percentile, most)\n");
    let asked = [(Objective::Latency, Kind::Decode), (Objective::Throughput, Kind::Prefill)];
    let mut fleets = Vec::new();
    for seed in 1..=2 {
        let mut world = World::generate(seed, NODES);
        for round in 0..ROUNDS {
            fleets.push(world.fleet());
            world = world.churned(round, LEAVING);
        }
    }
    let costs = |searched: usize, score: Score, (objective, kind): (Objective, Kind)| -> Vec<f64> {
        let cost = |fleet| {
            let request = Request { searched, score, ..Request::new(fleet, &model, kind, objective) };
            let chain = place(Strategy::Best, &request).ok()?.chains.into_iter().next()?;
            Some(objective.cost(&request.figures(&chain).ok()?))
        };
        fleets.iter().map(|fleet| cost(fleet).unwrap_or(f64::NAN)).collect()
    };
    let whole = asked.map(|asked| costs(NODES, Score::default(), asked));
    println!("| α, a ms | β, a s/Gbit | γ | latency | throughput |\n|---|---|---|---|---|");
    let grid = [0.0, 0.1, 1.0].into_iter().flat_map(|alpha| [0.0, 1.0, 10.0].map(|beta| (alpha, beta, 20.0)));
    for (alpha, beta, gamma) in grid.chain([(0.1, 30.0, 20.0), (0.1, 10.0, 0.0), (0.1, 10.0, 5.0), (0.1, 10.0, 80.0)]) {
        let mut cells = asked.iter().zip(&whole).map(|(asked, whole)| {
            let thin = costs(SEARCHED, Score { alpha, beta, gamma }, *asked);
            high(&thin.iter().zip(whole).map(|(thin, whole)| thin / whole).collect::<Vec<_>>())
        });
        let (latency, throughput) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        println!("| {alpha} | {beta} | {gamma} | {latency} | {throughput} |");
    }
}
