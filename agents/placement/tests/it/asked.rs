//! What the tests ask for.

use tensorlink_placement::fleet::Fleet;
use tensorlink_placement::generate::small;
use tensorlink_placement::model::{Kind, ModelProfile};
use tensorlink_placement::objective::{Objective, Weights};
use tensorlink_placement::plan::Plan;
use tensorlink_placement::{Refusal, Request, Strategy, place};

/// One that weighs everything.
pub(crate) const MIX: Objective =
    Objective::Mix(Weights { latency: 1.0, bottleneck: 1.0, price: 500.0, energy: 0.001 });

/// Every objective but a mix, and the work for which it is asked.
pub(crate) const ASKED: [(Objective, Kind); 4] = [
    (Objective::Latency, Kind::Decode),
    (Objective::Throughput, Kind::Prefill),
    (Objective::Price, Kind::Prefill),
    (Objective::Energy, Kind::Decode),
];

/// A fleet and its model.
pub(crate) fn instance(seed: u64) -> (Fleet, ModelProfile) {
    let (world, model) = small(seed);
    (world.fleet(), model)
}

/// The cost of a single chain.
pub(crate) fn cost(strategy: Strategy, request: &Request<'_>) -> Result<f64, Refusal> {
    let plan = place(strategy, request)?;
    Ok(total(request, &plan)[0])
}

/// The cost of each chain; panics if one is broken.
pub(crate) fn total(request: &Request<'_>, plan: &Plan) -> Vec<f64> {
    let figures = plan.chains.iter().map(|chain| request.figures(chain).expect("a plan is never broken"));
    figures.map(|figures| request.objective.cost(&figures)).collect()
}
