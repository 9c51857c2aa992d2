//! Chains of so many stages as are asked for: orders of any length are brought to it, and improved by moves that
//! keep it.

use crate::best::{Effort, Pool};
use crate::cuts::{bottleneck, cut};
use crate::moves::{rearrange, resize};
use crate::objective::Weights;
use crate::problem::{Goal, Problem};
use crate::rules::by_memory;

/// Nodes that are tried where an order is too short.
const SPARE: usize = 24;

/// The best chains of this length, from orders of any.
pub(crate) fn chains(
    problem: &Problem,
    goal: &Goal,
    taken: &[bool],
    effort: &Effort,
    (found, length): (&Pool, usize),
) -> Pool {
    let mut pool = Pool::default();
    if length > problem.layers {
        return pool;
    }
    let free = |node: &usize| !taken.get(*node).copied().unwrap_or(false);
    let largest: Vec<usize> = by_memory(problem).into_iter().filter(free).collect();
    let mut fastest: Vec<usize> = (0..problem.nodes()).filter(free).collect();
    fastest.sort_by(|a, b| problem.alone(*a).total_cmp(&problem.alone(*b)));
    let spare: Vec<usize> = fastest.iter().take(SPARE).chain(largest.iter().take(SPARE)).copied().collect();
    let first = |nodes: &[usize]| nodes.iter().take(length).copied().collect::<Vec<usize>>();
    let starts = found.0.iter().take(effort.improved).map(|found| found.order.clone());
    for start in starts.chain([first(&largest), first(&fastest)]) {
        let judged = sums(goal);
        let Some(order) = resize(problem, judged, &start, &spare, length) else { continue };
        let (mut order, _) = rearrange(problem, judged, &order, taken, effort.tried);
        pool.add(problem, goal, &order);
        // A goal with sums and bottlenecks is judged under a cap: that of the best cut.
        if let Some(cut) = cut(problem, goal, &order).filter(|_| goal.adds() && goal.bounds()) {
            let cap = bottleneck(problem, &order, &cut.ends) * (1.0 + 1e-9);
            (order, _) = rearrange(problem, Goal { cap, ..*goal }, &order, taken, effort.tried);
            pool.add(problem, goal, &order);
        }
    }
    pool
}

/// The goal without bottlenecks if it has sums: both together are judged under a cap only, and an order that is not
/// long enough yet has none.
fn sums(goal: &Goal) -> Goal {
    match goal.adds() {
        true => Goal { weights: Weights { bottleneck: 0.0, price: 0.0, ..goal.weights }, ..*goal },
        false => *goal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraints::Constraints;
    use crate::generate::small;
    use crate::model::Kind;
    use crate::objective::Objective;

    /// Every order of so many nodes.
    fn orders(nodes: usize, length: usize) -> Vec<Vec<usize>> {
        let longer = |orders: Vec<Vec<usize>>| {
            let with = |order: &Vec<usize>| {
                let order = order.clone();
                let left: Vec<usize> = (0..nodes).filter(|node| !order.contains(node)).collect();
                left.into_iter().map(move |node| [order.as_slice(), &[node]].concat())
            };
            orders.iter().flat_map(with).collect()
        };
        (0..length).fold(vec![vec![]], |orders, _| longer(orders))
    }

    #[test]
    fn they_are_within_a_hundredth_of_the_best_of_their_length() {
        let mix = Objective::Mix(Weights { latency: 1.0, bottleneck: 1.0, price: 500.0, energy: 0.001 });
        let (mut compared, mut off) = (0, 0);
        for seed in 1..=30 {
            let (world, model) = small(seed);
            let fleet = world.fleet();
            for objective in [Objective::Latency, Objective::Throughput, Objective::Price, Objective::Energy, mix] {
                for stages in 1..=4 {
                    let constraints = Constraints { stages: Some(stages), ..Constraints::default() };
                    let nodes = fleet.nodes.len().min(6);
                    let problem = Problem::new(&fleet, &model, Kind::Decode, &constraints, 0..nodes);
                    let goal = Goal::new(objective);
                    let naive = orders(nodes, stages).into_iter().filter_map(|order| cut(&problem, &goal, &order));
                    let naive = naive.map(|cut| cut.cost).fold(f64::INFINITY, f64::min);
                    let found = crate::best::chains(&problem, &goal, &[], &Effort::of(nodes)).into_iter().next();
                    match found {
                        Some(found) => {
                            assert_eq!(found.order.len(), stages);
                            off += usize::from(found.cut.cost > 1.01 * naive);
                            compared += 1;
                        }
                        None => assert_eq!(naive, f64::INFINITY, "{seed} {objective} {stages}"),
                    }
                }
            }
        }
        assert!(compared > 300 && off * 100 <= compared, "{off} of {compared}");
    }

    #[test]
    fn what_has_too_few_layers_or_nodes_has_no_chain() {
        let (world, model) = small(1);
        let fleet = world.fleet();
        for stages in [fleet.nodes.len() + 1, model.layers.len() + 1] {
            let constraints = Constraints { stages: Some(stages), ..Constraints::default() };
            let problem = Problem::new(&fleet, &model, Kind::Decode, &constraints, 0..fleet.nodes.len());
            let goal = Goal::new(Objective::Latency);
            assert!(crate::best::chains(&problem, &goal, &[], &Effort::of(8)).is_empty());
        }
    }
}
