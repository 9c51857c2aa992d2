//! The best chain of a small fleet, exactly: branch and bound over every ordered subset of nodes, with exact cuts.
//!
//! Exponential: tests and figures use it for up to eight nodes.

use crate::columns::{extend, finish, start};
use crate::cuts::{Cut, cut};
use crate::problem::{Goal, Problem};
use crate::table::at;

/// The most nodes that it takes.
pub(crate) const MOST: usize = 8;

/// An order and its best cut, among all that cost less than `below`.
pub(crate) fn search(problem: &Problem, goal: &Goal, below: f64) -> Option<(Vec<usize>, Cut)> {
    if problem.nodes() > MOST {
        return None;
    }
    let mut tree = Tree {
        problem,
        goal,
        sums: vec![],
        widest: vec![],
        order: vec![],
        below,
        best: None,
        remaining: remaining(problem, goal),
    };
    tree.sums.push(start(problem));
    tree.widest.push(start(problem));
    tree.grow();
    tree.best
}

struct Tree<'a> {
    problem: &'a Problem,
    goal: &'a Goal,
    /// Columns of sums and of bottlenecks after each node of the order.
    sums: Vec<Vec<f64>>,
    widest: Vec<Vec<f64>>,
    order: Vec<usize>,
    below: f64,
    best: Option<(Vec<usize>, Cut)>,
    /// No nodes add less than this to the sum behind a boundary.
    remaining: Vec<f64>,
}

impl Tree<'_> {
    fn grow(&mut self) {
        for node in 0..self.problem.nodes() {
            if self.order.contains(&node) || self.order.len() >= self.problem.layers {
                continue;
            }
            let previous = self.order.last().copied();
            let column = |add: bool, columns: &[Vec<f64>]| {
                let from = columns.last().map_or(&[][..], Vec::as_slice);
                let mut after = from.to_vec();
                match add {
                    true => extend::<true>(self.problem, self.goal, from, previous, node, f64::INFINITY, &mut after),
                    false => extend::<false>(self.problem, self.goal, from, previous, node, f64::INFINITY, &mut after),
                }
                after
            };
            // A goal without sums needs no column of them, and one without bottlenecks none of those.
            let sums = if self.goal.adds() { column(true, &self.sums) } else { vec![] };
            let widest = if self.goal.bounds() { column(false, &self.widest) } else { vec![] };
            self.sums.push(sums);
            self.widest.push(widest);
            self.order.push(node);
            if self.least(self.problem.layers) < self.below
                && let Some(found) = cut(self.problem, self.goal, &self.order)
                && found.cost < self.below
            {
                self.below = found.cost;
                self.best = Some((self.order.clone(), found));
            }
            if (1..self.problem.layers).any(|boundary| self.least(boundary) < self.below) {
                self.grow();
            }
            self.order.pop();
            self.sums.pop();
            self.widest.pop();
        }
    }

    /// No chain that begins with the order, and has its next boundary here, costs less.
    fn least(&self, boundary: usize) -> f64 {
        let mut cost = 0.0;
        if let Some(sum) = self.sums.last().and_then(|column| column.get(boundary)) {
            cost += sum + at(&self.remaining, boundary);
        }
        if let Some(widest) = self.widest.last().and_then(|column| column.get(boundary)) {
            let price: f64 = self.order.iter().map(|node| self.problem.price(*node)).sum();
            let others = || (0..self.problem.nodes()).filter(|node| !self.order.contains(node));
            let done = boundary == self.problem.layers;
            let cheapest = others().map(|node| self.problem.price(node)).fold(f64::INFINITY, f64::min);
            let price = if done { price } else { price + cheapest };
            // The rest of the layers, if all other nodes shared it evenly.
            let pooled = self.problem.pooled(boundary, others());
            cost = match *widest < f64::INFINITY && price < f64::INFINITY {
                true => cost + self.goal.per_bottleneck(price) * widest.max(pooled),
                false => f64::INFINITY,
            };
        }
        cost
    }
}

/// By boundary: what no nodes undercut, if each could be used again and again and all hops were the shortest.
fn remaining(problem: &Problem, goal: &Goal) -> Vec<f64> {
    let nodes = problem.nodes();
    let pairs = || (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))).filter(|(from, to)| from != to);
    let shortest = pairs().map(|(from, to)| problem.wait(from, to, 0)).fold(f64::INFINITY, f64::min);
    let back = pairs().map(|(from, to)| problem.back(from, to)).fold(f64::INFINITY, f64::min);
    let mut least = finish(problem);
    for first in (0..problem.layers).rev() {
        let mut here = f64::INFINITY;
        for node in 0..nodes {
            let per_second = goal.weights.latency + goal.weights.energy * problem.watts(node);
            for end in first + 1..=problem.furthest(node, first) {
                let rest = if end == problem.layers { goal.weights.latency * back } else { at(&least, end) };
                let hop = goal.weights.latency * shortest;
                here = here.min(hop + per_second * problem.seconds(node, first, end) + rest);
            }
        }
        if let Some(least) = least.get_mut(first) {
            *least = here;
        }
    }
    least
}
