//! A fifth of all workers claims more than it does. Whoever is used is measured, and the plan is made again.

use tensorlink_placement::constraints::Constraints;
use tensorlink_placement::fleet::Fleet;
use tensorlink_placement::generate::{World, model, small};
use tensorlink_placement::measured::{Observation, Trust};
use tensorlink_placement::model::{Kind, ModelProfile};
use tensorlink_placement::objective::{Figures, Objective};
use tensorlink_placement::plan::{Chain, Stage};
use tensorlink_placement::proximity::{Link, Proximity};
use tensorlink_placement::{Request, Strategy, place};

use crate::table::high;

/// Rounds of measuring.
const ROUNDS: usize = 4;

pub(crate) fn run() {
    println!("cost by true speeds / that of the plan by true speeds: median (95th percentile, most)\n");
    println!(
        "| nodes | seeds | liars | objective | as claimed | {ROUNDS} rounds | {ROUNDS} rounds, capped, admitted by measurement |"
    );
    println!("|---|---|---|---|---|---|---|");
    let large = |seed| model("70B int4").map(|model| (World::generate(seed, 60), model));
    for factor in [3.0, 10.0] {
        for (objective, kind) in [(Objective::Latency, Kind::Decode), (Objective::Throughput, Kind::Prefill)] {
            row("4 to 8", 200, &|seed| Some(small(seed)), factor, objective, kind);
            row("60", 30, &large, factor, objective, kind);
        }
    }
}

/// A row of the table.
fn row(
    nodes: &str,
    seeds: u64,
    instance: &dyn Fn(u64) -> Option<(World, ModelProfile)>,
    factor: f64,
    objective: Objective,
    kind: Kind,
) {
    let credulous = Trust { most: 1e9, unseen: 1.0, ..Trust::default() };
    let mut ratios = [vec![], vec![], vec![]];
    for (world, model) in (1..=seeds).filter_map(instance) {
        let cost = |chain: &Chain| objective.cost(&truly(&world, &model, kind, chain));
        let Some(honest) = plan(&world.fleet(), &model, kind, objective).map(|chain| cost(&chain)) else { continue };
        let tried = [(0, credulous), (ROUNDS, credulous), (ROUNDS, Trust::default())];
        for (ratios, (rounds, trust)) in ratios.iter_mut().zip(tried) {
            let chain = learn(&world, &model, kind, objective, factor, rounds, trust);
            ratios.extend(chain.map(|chain| cost(&chain) / honest));
        }
    }
    let [claimed, whole, capped] = ratios.map(|ratios| high(&ratios));
    println!("| {nodes} | {seeds} | 20 %, {factor} times | {objective} | {claimed} | {whole} | {capped} |");
}

/// The plan after so many rounds in which everybody in the plan is measured.
fn learn(
    world: &World,
    model: &ModelProfile,
    kind: Kind,
    objective: Objective,
    factor: f64,
    rounds: usize,
    trust: Trust,
) -> Option<Chain> {
    let claims = world.claimed(0.2, factor);
    let proximity = world.proximity();
    let mut observations: Vec<Vec<Observation>> = vec![vec![]; claims.len()];
    for _ in 0..rounds {
        let chain = plan(&believed(&trust.trying(), &claims, &observations, &proximity)?, model, kind, objective)?;
        for stage in &chain.0 {
            let share = world.nodes[stage.node].rates.int8 / claims[stage.node].rates.int8;
            observations[stage.node].push(Observation { share, paid: 2.0, age: 0.0 });
        }
    }
    plan(&believed(&trust, &claims, &observations, &proximity)?, model, kind, objective)
}

fn believed(
    trust: &Trust,
    claims: &[tensorlink_placement::node::Profile],
    observations: &[Vec<Observation>],
    proximity: &Proximity,
) -> Option<Fleet> {
    Some(Fleet { nodes: trust.believed(claims, observations).ok()?, proximity: proximity.clone() })
}

fn plan(fleet: &Fleet, model: &ModelProfile, kind: Kind, objective: Objective) -> Option<Chain> {
    place(Strategy::Best, &Request::new(fleet, model, kind, objective)).ok()?.chains.into_iter().next()
}

/// What a chain costs by the speeds and links as they are.
pub(crate) fn truly(world: &World, model: &ModelProfile, kind: Kind, chain: &Chain) -> Figures {
    let ids: Vec<usize> = chain.0.iter().map(|stage| stage.node).collect();
    let nodes = ids.iter().map(|id| world.nodes[*id]).collect();
    let links: Vec<Link> = ids.iter().flat_map(|from| ids.iter().map(|to| world.link(*from, *to))).collect();
    let fleet = Fleet { nodes, proximity: Proximity::Matrix { nodes: ids.len(), links } };
    let stages = chain.0.iter().enumerate().map(|(node, stage)| Stage { node, ..*stage }).collect();
    let worst = Figures { latency: f64::NAN, bottleneck: f64::NAN, price: f64::NAN, energy: f64::NAN };
    Chain(stages).figures(&fleet, model, kind, &Constraints::default()).unwrap_or(worst)
}
