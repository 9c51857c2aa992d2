//! Several chains of one fleet, so that the throughput of all together is large.
//!
//! Chains below a cap are taken one after another; the best cap is found by a sweep. Then two or three chains at a time
//! are taken apart, and their nodes and those that are left are packed anew.

use tensorlink_draws::Draws;

use crate::best::sweep::{Reach, under};
use crate::best::{Effort, Found, chains};
use crate::cuts::cut;
use crate::moves::improve;
use crate::objective::Weights;
use crate::problem::{Goal, Problem};
use crate::table::mark;

/// Caps tried, from that of the fastest chain to so many times it.
const CAPS: usize = 14;
const SLOWEST: f64 = 60.0;
/// The sweep ends when so many caps in a row were no better.
const WORSE: usize = 4;
/// What is left below a cap is packed below this many times it, and so on.
const LOOSER: f64 = 1.6;
/// Times that chains are taken apart, for each node.
const REPACKED: usize = 4;
/// Nodes that moves try for each chain in the end.
const TRIED: usize = 1_000;

const EFFORT: Effort = Effort { width: 32, swept: 32, sets: 1, shorter: 0, caps: 28, improved: 1, tried: 500 };

/// Up to `most` chains without a node in common.
pub(crate) fn pack(problem: &Problem, most: usize) -> Vec<Found> {
    let goal = Goal { cap: f64::MAX, weights: Weights { bottleneck: 1.0, ..Weights::NONE } };
    let Some(single) = chains(problem, &goal, &[], &EFFORT).into_iter().next() else { return vec![] };
    let fastest = single.cut.cost;
    let packing = Packing::new(problem, goal, most, fastest * SLOWEST);
    let mut best = vec![single];
    let mut worse = 0;
    for step in 0..CAPS {
        let cap = fastest * SLOWEST.powf(step as f64 / CAPS as f64);
        worse += 1;
        for which in [0, 1] {
            let found = packing.below(cap, which, vec![false; problem.nodes()], most);
            if throughput(&found) > throughput(&best) {
                (best, worse) = (found, 0);
            }
        }
        if worse == WORSE {
            break;
        }
    }
    packing.repack(&mut best);
    packing.polish(&mut best);
    best
}

/// Units a second of all chains.
pub(crate) fn throughput(chains: &[Found]) -> f64 {
    chains.iter().map(|found| 1.0 / found.cut.cost).sum()
}

struct Packing<'a> {
    problem: &'a Problem,
    goal: Goal,
    most: usize,
    slowest: f64,
    /// By node: the share of the speed and memory of all that others lack if it is in a chain.
    shares: Vec<f64>,
    reach: Reach,
}

impl<'a> Packing<'a> {
    fn new(problem: &'a Problem, goal: Goal, most: usize, slowest: f64) -> Self {
        let nodes = problem.nodes();
        let speeds: f64 = (0..nodes).map(|node| 1.0 / problem.alone(node)).sum();
        let memory: f64 = (0..nodes).map(|node| problem.memory(node).max(0.0)).sum();
        let share = |node: usize| 1.0 / problem.alone(node) / speeds + 0.5 * problem.memory(node).max(0.0) / memory;
        let shares = (0..nodes).map(share).collect();
        Self { problem, goal, most, slowest, shares, reach: Reach::of(problem) }
    }

    /// What it costs that a node is in a chain: the speed and memory that others then lack, or that with its number.
    fn weights(&self, cap: f64, which: usize) -> Vec<f64> {
        if which == 0 {
            return self.shares.clone();
        }
        let nodes = self.problem.nodes() as f64;
        let both = self.shares.iter().zip(self.reach.scarce(cap));
        both.map(|(share, scarce)| 0.5 * share + 0.5 * scarce / nodes).collect()
    }

    /// Chains below a cap, one after another, until none is left; then below looser ones.
    fn below(&self, mut cap: f64, which: usize, mut taken: Vec<bool>, most: usize) -> Vec<Found> {
        let mut found = Vec::new();
        let mut enter = self.weights(cap, which);
        while found.len() < most {
            let order = under(self.problem, cap, &enter, &taken, &EFFORT, 1).into_iter().next();
            let cut = order.and_then(|order| cut(self.problem, &self.goal, &order).map(|cut| Found { order, cut }));
            let Some(chain) = cut else {
                cap *= LOOSER;
                if cap > self.slowest {
                    break;
                }
                enter = self.weights(cap, which);
                continue;
            };
            mark(&mut taken, &chain.order, true);
            found.push(chain);
        }
        found
    }

    /// Takes chains apart, two or three at a time, and keeps what is packed of their nodes if it is better.
    fn repack(&self, chains: &mut Vec<Found>) {
        let mut draws = Draws::of(self.problem.nodes() as u64, 21);
        for _ in 0..REPACKED * self.problem.nodes() {
            let apart = (1 + draws.below(3)).min(chains.len());
            draws.shuffle(chains);
            let (open, closed) = chains.split_at(apart);
            let mut taken = vec![false; self.problem.nodes()];
            for chain in closed {
                mark(&mut taken, &chain.order, true);
            }
            let slowest = open.iter().map(|chain| chain.cut.cost).fold(0.0, f64::max);
            let cap = slowest * draws.log_between(0.35, 1.3);
            let found = self.below(cap, draws.below(2), taken, self.most - closed.len());
            if throughput(&found) > throughput(open) * (1.0 + 1e-9) {
                chains.splice(..apart, found);
            }
        }
    }

    /// Lets each chain take nodes that none has.
    fn polish(&self, chains: &mut [Found]) {
        let mut taken = vec![false; self.problem.nodes()];
        for found in chains.iter() {
            mark(&mut taken, &found.order, true);
        }
        for found in chains.iter_mut() {
            mark(&mut taken, &found.order, false);
            let (order, _) = improve(self.problem, self.goal, &found.order, &taken, TRIED);
            if let Some(cut) = cut(self.problem, &self.goal, &order)
                && cut.cost < found.cut.cost
            {
                *found = Found { order, cut };
            }
            mark(&mut taken, &found.order, true);
        }
    }
}
