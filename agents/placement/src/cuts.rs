//! The best cut of a model for nodes in a given order, exactly.

use crate::columns::{extend, start, trace};
use crate::problem::{Goal, Problem};

/// A cost, and where each node's layers end.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cut {
    pub(crate) cost: f64,
    pub(crate) ends: Vec<usize>,
}

/// A mix has a cut for each bottleneck on its front of sums and bottlenecks; so many are looked at.
const FRONT: usize = 512;

/// The best cut; each node has one layer or more. [`None`] if memory, links or the cap leave none.
pub(crate) fn cut(problem: &Problem, goal: &Goal, order: &[usize]) -> Option<Cut> {
    match (goal.adds(), goal.bounds()) {
        (true, true) => mixed(problem, goal, order),
        (true, false) => summed(problem, goal, order),
        (false, _) => {
            let ends = ends::<false>(problem, goal, order)?;
            Some(Cut { cost: goal.per_bottleneck(price(problem, order)) * bottleneck(problem, order, &ends), ends })
        }
    }
}

/// What a second of all nodes costs.
pub(crate) fn price(problem: &Problem, order: &[usize]) -> f64 {
    order.iter().map(|node| problem.price(*node)).sum()
}

/// Seconds of the slowest stage or transfer.
pub(crate) fn bottleneck(problem: &Problem, order: &[usize], ends: &[usize]) -> f64 {
    let mut slowest: f64 = 0.0;
    let mut first = 0;
    for (at, (node, end)) in order.iter().zip(ends).enumerate() {
        slowest = slowest.max(problem.seconds(*node, first, *end));
        if let Some(next) = order.get(at + 1) {
            slowest = slowest.max(problem.flow(*node, *next, *end));
        }
        first = *end;
    }
    slowest
}

/// Weighted latency and energy.
pub(crate) fn sum(problem: &Problem, goal: &Goal, order: &[usize], ends: &[usize]) -> f64 {
    let mut cost = 0.0;
    let mut first = 0;
    for (at, (node, end)) in order.iter().zip(ends).enumerate() {
        let per_second = goal.weights.latency + goal.weights.energy * problem.watts(*node);
        cost += problem.seconds(*node, first, *end) * per_second;
        if let Some(next) = order.get(at + 1) {
            cost += goal.weights.latency * problem.wait(*node, *next, *end);
        }
        first = *end;
    }
    if let (Some(first), Some(last)) = (order.first(), order.last()) {
        cost += goal.weights.latency * problem.back(*last, *first);
    }
    cost
}

fn ends<const ADD: bool>(problem: &Problem, goal: &Goal, order: &[usize]) -> Option<Vec<usize>> {
    let mut columns = vec![start(problem)];
    let mut previous = None;
    for node in order {
        let mut after = vec![f64::INFINITY; problem.layers + 1];
        let before = columns.last().map_or(&[][..], Vec::as_slice);
        extend::<ADD>(problem, goal, before, previous, *node, f64::INFINITY, &mut after);
        columns.push(after);
        previous = Some(*node);
    }
    trace::<ADD>(problem, goal, order, &columns)
}

fn summed(problem: &Problem, goal: &Goal, order: &[usize]) -> Option<Cut> {
    let ends = ends::<true>(problem, goal, order)?;
    Some(Cut { cost: sum(problem, goal, order, &ends), ends })
}

/// The least sum for each bottleneck, from the loosest to the tightest that can still be better.
fn mixed(problem: &Problem, goal: &Goal, order: &[usize]) -> Option<Cut> {
    let weight = goal.per_bottleneck(price(problem, order));
    let tightest = bottleneck(problem, order, &ends::<false>(problem, goal, order)?);
    let mut capped = *goal;
    let mut best: Option<Cut> = None;
    for _ in 0..FRONT {
        let Some(Cut { cost, ends }) = summed(problem, &capped, order) else { break };
        let slowest = bottleneck(problem, order, &ends);
        let whole = cost + weight * slowest;
        if best.as_ref().is_none_or(|best| whole < best.cost) {
            best = Some(Cut { cost: whole, ends });
        }
        // Sums only rise from here on, and no bottleneck is below the tightest.
        if best.as_ref().is_some_and(|best| cost + weight * tightest >= best.cost) {
            break;
        }
        capped.cap = slowest * (1.0 - 1e-12);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraints::Constraints;
    use crate::generate::small;
    use crate::model::Kind;
    use crate::objective::{Objective, Weights};

    #[test]
    fn a_cut_is_the_cheapest_of_all_cuts_of_two_nodes() {
        let mix = Objective::Mix(Weights { latency: 1.0, bottleneck: 2.0, price: 300.0, energy: 0.01 });
        let mut compared = 0;
        for seed in 1..=20 {
            let (world, model) = small(seed);
            let fleet = world.fleet();
            let constraints = Constraints::default();
            let problem = Problem::new(&fleet, &model, Kind::Decode, &constraints, 0..2);
            for objective in [Objective::Latency, Objective::Throughput, Objective::Price, Objective::Energy, mix] {
                let cost = |end: usize| {
                    let chain = problem.chain(&[0, 1], &[end, problem.layers]);
                    let figures = chain.figures(&fleet, &model, Kind::Decode, &constraints);
                    figures.map_or(f64::INFINITY, |figures| objective.cost(&figures))
                };
                let naive = (1..problem.layers).map(cost).fold(f64::INFINITY, f64::min);
                match cut(&problem, &Goal::new(objective), &[0, 1]) {
                    Some(found) => {
                        assert!((found.cost / naive - 1.0).abs() < 1e-9, "{seed} {objective}");
                        compared += 1;
                    }
                    None => assert_eq!(naive, f64::INFINITY, "{seed} {objective}"),
                }
            }
        }
        assert!(compared >= 20, "{compared}");
    }
}
