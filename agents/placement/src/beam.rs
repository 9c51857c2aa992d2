//! A layered beam: chains grow layer by layer, and for each last node the cheapest few are kept.
//!
//! A label is a chain that has computed the layers before a boundary: (layer, last node, set of nodes). A stage ends at
//! the most that memory and the cap allow, or at a few ends before. Labels of one boundary are ranked by what they cost
//! and by what it typically costs to leave their last node: without that, a node that computes fast and sends slowly
//! crowds out those that can go on.

use crate::problem::{Goal, Problem};
use crate::table::{Grid, at};

/// How wide a beam is, and what counts in it beside the goal.
#[derive(Clone, Debug)]
pub(crate) struct Beam<'a> {
    pub(crate) goal: Goal,
    /// What it costs that a node is in the chain.
    pub(crate) enter: &'a [f64],
    /// What it is expected to cost to leave a node.
    pub(crate) leave: &'a [f64],
    /// Labels that go on from one boundary.
    pub(crate) width: usize,
    /// Labels with different sets that are kept for one boundary and last node.
    pub(crate) sets: usize,
    /// Ends tried before the furthest.
    pub(crate) shorter: usize,
    /// Labels that cost as much are dropped.
    pub(crate) bound: f64,
}

#[derive(Clone, Copy)]
struct Label {
    cost: f64,
    rank: f64,
    /// Sum of the nodes' hashes: equal for equal sets.
    set: u64,
    /// In [`Kept`].
    parent: u32,
    first: u32,
}

const FREE: Label = Label { cost: f64::INFINITY, rank: f64::INFINITY, set: 0, parent: u32::MAX, first: 0 };

/// Labels that went on.
struct Kept {
    labels: Vec<(Label, usize)>,
    /// Of each label, a bit for each node of its chain.
    visited: Vec<u64>,
    words: usize,
}

impl Kept {
    fn add(&mut self, label: Label, last: usize) {
        // A label without a parent has one that is beyond all, of which there are no words.
        let from = self.words.saturating_mul(label.parent as usize);
        for word in 0..self.words {
            let inherited = self.visited.get(from.saturating_add(word)).copied().unwrap_or(0);
            let own = if word == last / 64 { 1 << (last % 64) } else { 0 };
            self.visited.push(inherited | own);
        }
        self.labels.push((label, last));
    }

    fn has(&self, at: usize, node: usize) -> bool {
        self.visited.get(at * self.words + node / 64).is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    fn order(&self, label: Label, last: usize) -> Vec<usize> {
        let mut order = vec![last];
        let mut parent = label.parent;
        while let Some((label, node)) = self.labels.get(parent as usize) {
            order.push(*node);
            parent = label.parent;
        }
        order.reverse();
        order
    }
}

impl Beam<'_> {
    /// The cheapest orders found, the best first. Nodes in `taken` are left out.
    pub(crate) fn search(&self, problem: &Problem, taken: &[bool], answers: usize) -> Vec<Vec<usize>> {
        let nodes = problem.nodes();
        let mut slots = vec![FREE; (problem.layers + 1) * nodes * self.sets];
        let mut kept = Kept { labels: vec![], visited: vec![], words: nodes.div_ceil(64) };
        let open: Vec<usize> = (0..nodes).filter(|node| !taken.get(*node).copied().unwrap_or(false)).collect();
        let furthest = self.furthest(problem, taken);
        for node in &open {
            self.advance(problem, &furthest, &mut slots, None, 0, *node);
        }
        let mut here: Vec<(Label, usize)> = Vec::with_capacity(nodes * self.sets);
        for boundary in 1..problem.layers {
            self.gather(&slots, boundary, nodes, &mut here);
            for (label, last) in here.drain(..) {
                let at = kept.labels.len();
                kept.add(label, last);
                for node in &open {
                    if !kept.has(at, *node) {
                        self.advance(problem, &furthest, &mut slots, Some((label, last, at)), boundary, *node);
                    }
                }
            }
        }
        let mut done = Vec::new();
        self.gather(&slots, problem.layers, nodes, &mut done);
        done.sort_unstable_by(|a, b| a.0.rank.total_cmp(&b.0.rank));
        done.into_iter().take(answers).map(|(label, last)| kept.order(label, last)).collect()
    }

    /// By boundary and node: the furthest end of a stage that memory and the cap allow; 0 for nodes that are not open.
    fn furthest(&self, problem: &Problem, taken: &[bool]) -> Grid<usize> {
        let capped = self.goal.cap < f64::MAX;
        let end = |first: usize, node: usize| match capped {
            _ if taken.get(node).copied().unwrap_or(false) => 0,
            true => problem.furthest_within(node, first, self.goal.cap),
            false => problem.furthest(node, first),
        };
        let ends = (0..problem.layers).flat_map(|first| (0..problem.nodes()).map(move |node| end(first, node)));
        Grid::new(problem.nodes(), ends, 0)
    }

    /// The labels of a boundary that go on.
    fn gather(&self, slots: &[Label], boundary: usize, nodes: usize, into: &mut Vec<(Label, usize)>) {
        into.clear();
        let group = nodes * self.sets;
        let labels = slots.iter().skip(boundary * group).take(group).enumerate();
        into.extend(labels.filter(|(_, label)| label.rank < f64::INFINITY).map(|(at, label)| (*label, at / self.sets)));
        if into.len() > self.width {
            into.select_nth_unstable_by(self.width, |a, b| a.0.rank.total_cmp(&b.0.rank));
            into.truncate(self.width);
        }
    }

    /// Lets a node take the layers from a boundary on.
    #[inline]
    fn advance(
        &self,
        problem: &Problem,
        furthest: &Grid<usize>,
        slots: &mut [Label],
        from: Option<(Label, usize, usize)>,
        boundary: usize,
        node: usize,
    ) {
        let Goal { weights, cap } = self.goal;
        let most = furthest.at(boundary, node);
        if most <= boundary {
            return;
        }
        let mut entered = at(self.enter, node);
        let (mut set, mut parent, mut first) = (0, u32::MAX, node as u32);
        if let Some((label, last, parent_at)) = from {
            if problem.flow(last, node, boundary) > cap {
                return;
            }
            entered += label.cost;
            if weights.latency > 0.0 {
                entered += weights.latency * problem.wait(last, node, boundary);
            }
            (set, parent, first) = (label.set, parent_at as u32, label.first);
        }
        let set: u64 = set + tensorlink_draws::word(node as u64, 1) / (1 << 12);
        let per_second = weights.latency + weights.energy * problem.watts(node);
        let back = if weights.latency > 0.0 { weights.latency * problem.back(node, first as usize) } else { 0.0 };
        let span = most - boundary;
        for shorter in 0..=self.shorter.min(span - 1) {
            let end = if self.shorter >= span { most - shorter } else { most - shorter * span / (self.shorter + 1) };
            let cost =
                if per_second > 0.0 { entered + per_second * problem.seconds(node, boundary, end) } else { entered };
            if cost >= self.bound {
                continue;
            }
            let rest = if end == problem.layers { back } else { back + at(self.leave, node) };
            let label = Label { cost, rank: cost + rest, set, parent, first };
            let group = (end * problem.nodes() + node) * self.sets;
            if let Some(group) = slots.get_mut(group..group + self.sets) {
                offer(group, label);
            }
        }
    }
}

/// Keeps a label if it is better than that of the same set, or than the worst.
#[inline]
fn offer(slots: &mut [Label], label: Label) {
    let mut worst: Option<&mut Label> = None;
    for slot in slots {
        if slot.set == label.set && slot.parent != u32::MAX || slot.rank == f64::INFINITY {
            worst = Some(slot);
            break;
        }
        if worst.as_ref().is_none_or(|worst| slot.rank > worst.rank) {
            worst = Some(slot);
        }
    }
    if let Some(worst) = worst.filter(|worst| label.rank < worst.rank) {
        *worst = label;
    }
}
