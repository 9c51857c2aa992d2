//! The beams that an objective takes: one for sums, a bisection of the cap for throughput, a sweep of it for prices and
//! mixes.

use crate::beam::Beam;
use crate::best::{Effort, Pool};
use crate::objective::Weights;
use crate::problem::{Goal, Problem};

/// Steps of the bisection.
const BISECTIONS: usize = 14;
/// It ends when the logarithms of both bounds are this close.
const CLOSE: f64 = 0.003;
/// What a node that can hand on to few costs beside one that can to all.
const FEW_LINKS: f64 = 0.5;
/// Orders taken from each beam.
const ANSWERS: usize = 3;

/// Adds the orders that beams find.
pub(crate) fn orders(problem: &Problem, goal: &Goal, taken: &[bool], effort: &Effort, pool: &mut Pool) {
    match (goal.adds(), goal.bounds()) {
        (true, false) => summed(problem, goal, taken, effort, pool),
        (false, _) if goal.weights.price == 0.0 => fastest(problem, goal, taken, effort, pool),
        _ => capped(problem, goal, taken, effort, pool),
    }
}

fn summed(problem: &Problem, goal: &Goal, taken: &[bool], effort: &Effort, pool: &mut Pool) {
    let beam = Beam {
        goal: *goal,
        enter: &vec![0.0; problem.nodes()],
        leave: &leaving(problem, goal),
        width: effort.width,
        sets: effort.sets,
        shorter: effort.shorter,
        // Cuts of an order that the beam knows are better than the beam's own by little.
        bound: pool.best().map_or(f64::INFINITY, |found| found.cut.cost * 1.05),
    };
    for order in beam.search(problem, taken, ANSWERS) {
        pool.add(problem, goal, &order);
    }
}

/// Weighted seconds that the nearer quarter of a node's links takes on average.
fn leaving(problem: &Problem, goal: &Goal) -> Vec<f64> {
    let nodes = problem.nodes();
    let boundary = problem.most_handed();
    let near = (nodes / 4).clamp(1, 16);
    let of = |node: usize| {
        let others = (0..nodes).filter(|other| *other != node && problem.flow(node, *other, boundary) < f64::INFINITY);
        let mut waits: Vec<f64> = others.map(|other| problem.wait(node, other, boundary)).collect();
        waits.sort_unstable_by(f64::total_cmp);
        waits.truncate(near);
        if waits.is_empty() { 0.0 } else { goal.weights.latency * waits.iter().sum::<f64>() / waits.len() as f64 }
    };
    (0..nodes).map(of).collect()
}

/// The least cap under which a chain is found.
fn fastest(problem: &Problem, goal: &Goal, taken: &[bool], effort: &Effort, pool: &mut Pool) {
    let weight = goal.weights.bottleneck;
    let mut low = problem.pooled(0, free(problem, taken)).ln() - 0.01;
    // Seeds give a first upper bound.
    let mut high = pool.best().map_or_else(|| slowest(problem, taken), |found| found.cut.cost / weight).ln();
    let reach = Reach::of(problem);
    for _ in 0..BISECTIONS {
        if high - low < CLOSE || !low.is_finite() || !high.is_finite() {
            break;
        }
        let cap = ((low + high) / 2.0).exp();
        let mut found = f64::INFINITY;
        for order in under(problem, cap, &reach.scarce(cap), taken, effort, ANSWERS) {
            if let Some(cost) = pool.add(problem, goal, &order) {
                found = found.min(cost / weight);
            }
        }
        if found < f64::INFINITY { high = cap.min(found).ln() } else { low = cap.ln() }
    }
}

/// How many each node can hand on to.
pub(crate) struct Reach(Vec<Vec<f64>>);

impl Reach {
    /// Of the most that crosses a boundary.
    pub(crate) fn of(problem: &Problem) -> Self {
        let boundary = problem.most_handed();
        let sorted = |node: usize| {
            let mut flows: Vec<f64> = (0..problem.nodes()).map(|other| problem.flow(node, other, boundary)).collect();
            flows.sort_unstable_by(f64::total_cmp);
            flows
        };
        Self((0..problem.nodes()).map(sorted).collect())
    }

    /// One for a node that can hand on to most others within a cap, and more for one that can to few.
    pub(crate) fn scarce(&self, cap: f64) -> Vec<f64> {
        let reach: Vec<usize> = self.0.iter().map(|flows| flows.partition_point(|flow| *flow <= cap)).collect();
        let most = reach.iter().copied().max().unwrap_or(0).max(1) as f64;
        reach.iter().map(|count| 1.0 + FEW_LINKS * (1.0 - *count as f64 / most)).collect()
    }
}

/// Chains whose stages and transfers stay below a cap, by what it costs that each node is in them.
pub(crate) fn under(
    problem: &Problem,
    cap: f64,
    enter: &[f64],
    taken: &[bool],
    effort: &Effort,
    answers: usize,
) -> Vec<Vec<usize>> {
    let beam = Beam {
        goal: Goal { cap, weights: Weights::NONE },
        enter,
        leave: &vec![0.0; problem.nodes()],
        width: effort.width,
        sets: effort.sets,
        shorter: 0,
        bound: f64::INFINITY,
    };
    beam.search(problem, taken, answers)
}

/// Chains below each of some caps, by their prices and what else is added.
fn capped(problem: &Problem, goal: &Goal, taken: &[bool], effort: &Effort, pool: &mut Pool) {
    let (low, high) = (problem.pooled(0, free(problem, taken)), slowest(problem, taken));
    if !(low > 0.0 && high < f64::INFINITY && high > low) {
        return;
    }
    let leave = leaving(problem, goal);
    let step = (high / low).powf(1.0 / (effort.caps.max(2) - 1) as f64);
    for at in 0..effort.caps {
        let cap = low * step.powf(at as f64);
        let price = |node: usize| goal.weights.price * problem.price(node) * cap;
        let beam = Beam {
            goal: Goal { cap, ..*goal },
            enter: &(0..problem.nodes()).map(price).collect::<Vec<f64>>(),
            leave: &leave,
            width: effort.swept,
            sets: effort.sets,
            shorter: if goal.adds() { effort.shorter } else { 0 },
            // A chain with a bottleneck below the cap before was found with that.
            bound: pool.best().map_or(f64::INFINITY, |found| found.cut.cost * step),
        };
        for order in beam.search(problem, taken, ANSWERS) {
            pool.add(problem, goal, &order);
        }
    }
}

fn free(problem: &Problem, taken: &[bool]) -> impl Iterator<Item = usize> {
    (0..problem.nodes()).filter(|node| !taken.get(*node).copied().unwrap_or(false))
}

/// Seconds that no stage and no transfer over an open link exceeds.
fn slowest(problem: &Problem, taken: &[bool]) -> f64 {
    let boundary = problem.most_handed();
    let mut slowest = free(problem, taken).map(|node| problem.alone(node)).fold(0.0, f64::max);
    for from in free(problem, taken) {
        for to in free(problem, taken) {
            let flow = problem.flow(from, to, boundary);
            if from != to && flow < f64::INFINITY {
                slowest = slowest.max(flow);
            }
        }
    }
    slowest * 1.001
}
