//! The joint search for workers, their order and the cut.
//!
//! | module | what lives there |
//! |---|---|
//! | this one | one chain: orders from beams and simple rules, improved by moves, cut exactly |
//! | [`sweep`] | the beams that an objective takes |
//! | [`length`] | chains of so many stages as are asked for |
//! | [`pack`] | several chains of one fleet |
//! | [`rings`] | chains with the same cuts and no operator in common |

mod length;
pub(crate) mod pack;
pub(crate) mod rings;
pub(crate) mod sweep;

use crate::cuts::{Cut, cut};
use crate::moves::improve;
use crate::problem::{Goal, Problem};
use crate::rules::{layer_aware, parallax, rmw};

/// How long the search takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Labels that go on from one boundary.
    pub(crate) width: usize,
    /// The same in each beam of a sweep.
    pub(crate) swept: usize,
    /// Sets kept for one boundary and last node.
    pub(crate) sets: usize,
    /// Ends tried before the furthest where sums count.
    pub(crate) shorter: usize,
    /// Values of the cap for a price or a mix.
    pub(crate) caps: usize,
    /// Orders that moves improve.
    pub(crate) improved: usize,
    /// Nodes that moves try, for each order.
    pub(crate) tried: usize,
}

impl Effort {
    /// Thorough for few nodes, and a tenth of a second for a hundred.
    pub(crate) fn of(nodes: usize) -> Self {
        match nodes {
            0..=12 => Self { width: 64, swept: 64, sets: 6, shorter: 11, caps: 28, improved: 6, tried: 3_000 },
            13..=40 => Self { width: 64, swept: 64, sets: 3, shorter: 5, caps: 28, improved: 3, tried: 3_000 },
            41..=128 => Self { width: 96, swept: 32, sets: 2, shorter: 3, caps: 28, improved: 3, tried: 4_000 },
            _ => Self { width: 64, swept: 32, sets: 1, shorter: 2, caps: 28, improved: 3, tried: 6_000 },
        }
    }
}

/// An order and its cut.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Found {
    pub(crate) order: Vec<usize>,
    pub(crate) cut: Cut,
}

/// Orders that were found, each with its best cut, the cheapest first.
#[derive(Default)]
pub(crate) struct Pool(Vec<Found>);

impl Pool {
    /// Cuts an order, if it is new. Returns its cost.
    pub(crate) fn add(&mut self, problem: &Problem, goal: &Goal, order: &[usize]) -> Option<f64> {
        if let Some(known) = self.0.iter().find(|known| known.order == order) {
            return Some(known.cut.cost);
        }
        let cut = cut(problem, goal, order)?;
        let cost = cut.cost;
        let at = self.0.partition_point(|known| known.cut.cost <= cost);
        self.0.insert(at, Found { order: order.to_vec(), cut });
        Some(cost)
    }

    pub(crate) fn best(&self) -> Option<&Found> {
        self.0.first()
    }
}

/// The best chain found, and those that moves were tried on, the best first.
pub(crate) fn chains(problem: &Problem, goal: &Goal, taken: &[bool], effort: &Effort) -> Vec<Found> {
    let mut pool = Pool::default();
    let free = |order: &[usize]| order.iter().all(|node| !taken.get(*node).copied().unwrap_or(false));
    for order in seeds(problem, goal) {
        if free(&order) {
            pool.add(problem, goal, &order);
        }
    }
    sweep::orders(problem, goal, taken, effort, &mut pool);
    if let Some(stages) = problem.stages {
        return length::chains(problem, goal, taken, effort, (&pool, stages)).0;
    }
    let starts: Vec<Found> = pool.0.iter().take(effort.improved).cloned().collect();
    for start in starts {
        // A goal with sums and bottlenecks is judged under a cap: that of the best cut.
        let mut capped = *goal;
        if goal.adds() && goal.bounds() {
            capped.cap = crate::cuts::bottleneck(problem, &start.order, &start.cut.ends) * (1.0 + 1e-9);
        }
        let (order, _) = improve(problem, capped, &start.order, taken, effort.tried);
        pool.add(problem, goal, &order);
    }
    pool.0
}

/// The orders of simple rules: with exact cuts, they are what the search is never worse than.
pub(crate) fn seeds(problem: &Problem, goal: &Goal) -> Vec<Vec<usize>> {
    let ruled = [rmw::all(problem), rmw::smallest(problem), layer_aware::ring(problem), parallax::chain(problem, goal)];
    ruled.into_iter().flatten().map(|assigned| assigned.order).collect()
}
