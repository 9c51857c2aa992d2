//! Local moves on an order of nodes, each judged by the exact cut: remove, replace, insert, swap, relocate, 2-opt.
//!
//! Every move puts some nodes in the place of a run of the order. Columns before and behind each position are kept, so
//! that only the nodes put in are computed.

use crate::columns::{extend, finish, meet, prepend, start};
use crate::cuts::price;
use crate::problem::{Goal, Problem};
use crate::table::mark;

/// An order that is being improved.
pub(crate) struct Moves<'a> {
    problem: &'a Problem,
    goal: Goal,
    order: Vec<usize>,
    /// Nodes of the order, and those that may not be used.
    used: Vec<bool>,
    before: Vec<Vec<f64>>,
    behind: Vec<Vec<f64>>,
    cost: f64,
    price: f64,
    /// Whether the order keeps its length.
    fixed: bool,
    /// Nodes that may still be tried.
    budget: usize,
    scratch: [Vec<f64>; 2],
}

/// How much better a move must be.
const BETTER: f64 = 1.0 - 1e-9;

/// Improves an order until no move does, or the budget of nodes tried is spent. Returns the order and its cost, which
/// is infinite if it has no cut.
///
/// A goal with sums and bottlenecks is judged with its cap in the bottleneck's place.
pub(crate) fn improve(
    problem: &Problem,
    goal: Goal,
    order: &[usize],
    taken: &[bool],
    budget: usize,
) -> (Vec<usize>, f64) {
    moved(problem, goal, order, taken, (budget, false))
}

/// The same by moves that keep the order's length.
pub(crate) fn rearrange(
    problem: &Problem,
    goal: Goal,
    order: &[usize],
    taken: &[bool],
    budget: usize,
) -> (Vec<usize>, f64) {
    moved(problem, goal, order, taken, (budget, true))
}

fn moved(
    problem: &Problem,
    goal: Goal,
    order: &[usize],
    taken: &[bool],
    (budget, fixed): (usize, bool),
) -> (Vec<usize>, f64) {
    if goal.adds() {
        let mut moves = Moves { fixed, ..Moves::new::<true>(problem, goal, order, taken, budget) };
        moves.run::<true>();
        (moves.order, moves.cost)
    } else {
        let mut moves = Moves { fixed, ..Moves::new::<false>(problem, goal, order, taken, budget) };
        moves.run::<false>();
        (moves.order, moves.cost)
    }
}

/// The order with nodes of `spare` put in where they cost least, or nodes taken out that are missed least, one after
/// another until there are `length`. [`None`] if no node is left to put in.
pub(crate) fn resize(
    problem: &Problem,
    goal: Goal,
    order: &[usize],
    spare: &[usize],
    length: usize,
) -> Option<Vec<usize>> {
    if goal.adds() {
        Moves::new::<true>(problem, goal, order, &[], usize::MAX).resize::<true>(spare, length)
    } else {
        Moves::new::<false>(problem, goal, order, &[], usize::MAX).resize::<false>(spare, length)
    }
}

impl<'a> Moves<'a> {
    fn new<const ADD: bool>(problem: &'a Problem, goal: Goal, order: &[usize], taken: &[bool], budget: usize) -> Self {
        let mut used = taken.to_vec();
        used.resize(problem.nodes(), false);
        let scratch = [start(problem), start(problem)];
        let mut moves = Self {
            problem,
            goal,
            order: vec![],
            used,
            before: vec![],
            behind: vec![],
            cost: f64::INFINITY,
            price: 0.0,
            fixed: false,
            budget,
            scratch,
        };
        moves.adopt::<ADD>(order.to_vec());
        moves
    }

    /// Makes an order the present one, and computes its columns.
    fn adopt<const ADD: bool>(&mut self, order: Vec<usize>) {
        mark(&mut self.used, &self.order, false);
        mark(&mut self.used, &order, true);
        self.price = price(self.problem, &order);
        self.order = order;
        let mut column = start(self.problem);
        let mut previous = None;
        self.before.clear();
        for node in &self.order {
            let mut after = column.clone();
            extend::<ADD>(self.problem, &self.goal, &column, previous, *node, f64::INFINITY, &mut after);
            self.before.push(std::mem::replace(&mut column, after));
            previous = Some(*node);
        }
        let cut = column.last().copied().unwrap_or(f64::INFINITY);
        self.before.push(column);
        let mut column = finish(self.problem);
        let mut next = None;
        self.behind.clear();
        for node in self.order.iter().rev() {
            let mut before = column.clone();
            prepend::<ADD>(self.problem, &self.goal, &column, next, *node, &mut before);
            self.behind.push(std::mem::replace(&mut column, before));
            next = Some(*node);
        }
        self.behind.push(column);
        self.behind.reverse();
        self.cost = match (self.order.first(), self.order.last()) {
            (Some(first), Some(last)) => self.whole::<ADD>(cut, *first, *last, self.price),
            _ => f64::INFINITY,
        };
    }

    /// The cost of an order whose cut costs `cut`.
    fn whole<const ADD: bool>(&self, cut: f64, first: usize, last: usize, price: f64) -> f64 {
        let weight = self.goal.per_bottleneck(price);
        match (ADD, self.goal.weights.latency > 0.0) {
            (false, _) => weight * cut,
            (true, true) => cut + self.goal.weights.latency * self.problem.back(last, first) + self.capped(weight),
            (true, false) => cut + self.capped(weight),
        }
    }

    fn capped(&self, weight: f64) -> f64 {
        if weight > 0.0 { weight * self.goal.cap } else { 0.0 }
    }

    /// What a cut may cost at most for the order to be better than the present one.
    fn bound<const ADD: bool>(&self, price: f64) -> f64 {
        let weight = self.goal.per_bottleneck(price);
        let aim = self.cost * BETTER;
        if ADD { aim - self.capped(weight) } else { aim / weight }
    }

    /// The cost with the nodes from `start` to `end` replaced by others; infinite if it is not better.
    fn splice<const ADD: bool>(&mut self, from: usize, to: usize, nodes: &[usize]) -> f64 {
        self.budget = self.budget.saturating_sub(nodes.len().max(1));
        let earlier = from.checked_sub(1).and_then(|at| self.order.get(at)).copied();
        let later = self.order.get(to).copied();
        let first = if from > 0 { self.order.first() } else { nodes.first().or(self.order.get(to)) };
        let last = if later.is_some() { self.order.last() } else { nodes.last().or(earlier.as_ref()) };
        let (Some(first), Some(last)) = (first.copied(), last.copied()) else { return f64::INFINITY };
        let (Some(before), Some(behind)) = (self.before.get(from), self.behind.get(to)) else { return f64::INFINITY };
        let replaced = self.order.get(from..to).unwrap_or_default();
        let price = self.price - price(self.problem, replaced) + price(self.problem, nodes);
        let bound = self.bound::<ADD>(price);
        let mut previous = earlier;
        let [mut column, mut next] = std::mem::take(&mut self.scratch);
        column.clone_from(before);
        for node in nodes {
            extend::<ADD>(self.problem, &self.goal, &column, previous, *node, bound, &mut next);
            std::mem::swap(&mut column, &mut next);
            previous = Some(*node);
        }
        let cut = meet::<ADD>(self.problem, &self.goal, &column, previous, behind, later);
        self.scratch = [column, next];
        self.whole::<ADD>(cut, first, last, price)
    }

    /// Adopts the order with the splice if that is better.
    fn take<const ADD: bool>(&mut self, from: usize, to: usize, nodes: &[usize]) -> bool {
        if self.splice::<ADD>(from, to, nodes) >= self.cost * BETTER {
            return false;
        }
        let mut order = self.order.clone();
        order.splice(from..to, nodes.iter().copied());
        self.adopt::<ADD>(order);
        true
    }

    fn resize<const ADD: bool>(mut self, spare: &[usize], length: usize) -> Option<Vec<usize>> {
        while self.order.len() != length {
            // Whatever it costs is better than another length.
            self.cost = f64::INFINITY;
            let mut best = (f64::INFINITY, None);
            let shorter = self.order.len() > length;
            for at in 0..self.order.len() + usize::from(!shorter) {
                if shorter {
                    let cost = self.splice::<ADD>(at, at + 1, &[]);
                    if cost < best.0 {
                        best = (cost, Some((at, at + 1, None)));
                    }
                    continue;
                }
                for node in spare {
                    let used = self.used.get(*node).copied().unwrap_or(true);
                    let cost = if used { f64::INFINITY } else { self.splice::<ADD>(at, at, &[*node]) };
                    if cost < best.0 {
                        best = (cost, Some((at, at, Some(*node))));
                    }
                }
            }
            let (from, to, node) = match best.1 {
                Some(found) => found,
                // Nothing of this length has a cut: the least of memory goes, or whoever is next comes.
                None if shorter => {
                    let memory = |node: &usize| self.problem.memory(*node);
                    let numbered = self.order.iter().enumerate();
                    let (at, _) = numbered.min_by(|a, b| memory(a.1).total_cmp(&memory(b.1)))?;
                    (at, at + 1, None)
                }
                None => {
                    let next = spare.iter().find(|node| !self.used.get(**node).copied().unwrap_or(true))?;
                    (self.order.len(), self.order.len(), Some(*next))
                }
            };
            let mut order = self.order.clone();
            order.splice(from..to, node);
            self.adopt::<ADD>(order);
        }
        Some(self.order)
    }

    fn run<const ADD: bool>(&mut self) {
        let mut improved = true;
        while improved && self.budget > 0 {
            improved = self.exchange::<ADD>();
            improved |= self.reorder::<ADD>();
        }
    }

    /// Removes, replaces or inserts, at each position the best of these.
    fn exchange<const ADD: bool>(&mut self) -> bool {
        let mut improved = false;
        let mut at = 0;
        while at <= self.order.len() && self.budget > 0 {
            let longest = self.fixed || self.order.len() >= self.problem.layers;
            let mut best = (self.cost * BETTER, None);
            let here = at < self.order.len();
            let pair = !self.fixed && at + 1 < self.order.len();
            let ends = [here.then_some(at + 1), (!longest).then_some(at), pair.then_some(at + 2)];
            for end in ends.into_iter().flatten() {
                if end > at && !self.fixed {
                    let cost = self.splice::<ADD>(at, end, &[]);
                    if cost < best.0 {
                        best = (cost, Some((end, None)));
                    }
                }
                for node in 0..self.problem.nodes() {
                    if self.used.get(node).copied().unwrap_or(true) {
                        continue;
                    }
                    let cost = self.splice::<ADD>(at, end, &[node]);
                    if cost < best.0 {
                        best = (cost, Some((end, Some(node))));
                    }
                }
            }
            if let (_, Some((end, node))) = best {
                let mut order = self.order.clone();
                order.splice(at..end, node);
                self.adopt::<ADD>(order);
                improved = true;
            }
            at += 1;
        }
        improved
    }

    /// Swaps two nodes, moves one, or reverses a run.
    fn reorder<const ADD: bool>(&mut self) -> bool {
        let mut improved = false;
        for from in 0..self.order.len() {
            for to in from + 2..=self.order.len() {
                if self.budget == 0 {
                    return improved;
                }
                // An improvement keeps the length, since no move here adds or removes a node.
                let run = self.order.get(from..to).unwrap_or_default().to_vec();
                let mut swapped = run.clone();
                swapped.swap(0, to - from - 1);
                let mut later = run.clone();
                later.rotate_left(1);
                let mut earlier = run.clone();
                earlier.rotate_right(1);
                let reversed: Vec<usize> = run.iter().rev().copied().collect();
                for nodes in [swapped, later, earlier, reversed] {
                    let same = self.order.get(from..to) == Some(nodes.as_slice());
                    improved |= !same && self.take::<ADD>(from, to, &nodes);
                }
            }
        }
        improved
    }
}
