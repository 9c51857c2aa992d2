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
        let Some(mut field) = Field::new(self, problem, taken) else { return vec![] };
        for place in 0..field.open.len() {
            field.advance(None, 0, place);
        }
        let mut here: Vec<Origin> = Vec::with_capacity(field.open.len() * self.sets);
        for boundary in 1..problem.layers {
            field.gather(boundary, &mut here);
            if self.first_decides() {
                // Whatever is behind them, labels are told apart by their costs alone: the cheapest that may go
                // on does.
                here.sort_by(|a, b| a.label.cost.total_cmp(&b.label.cost));
                for place in 0..field.open.len() {
                    if let Some(from) = here.iter().find(|from| field.may_follow(from, boundary, place)) {
                        field.advance(Some(from), boundary, place);
                    }
                }
                continue;
            }
            for from in &here {
                for place in 0..field.open.len() {
                    if field.may_follow(from, boundary, place) {
                        field.advance(Some(from), boundary, place);
                    }
                }
            }
        }
        let mut done = Vec::new();
        field.gather(problem.layers, &mut done);
        done.sort_unstable_by(|a, b| a.label.rank.total_cmp(&b.label.rank));
        done.into_iter().take(answers).map(|end| field.kept.order(end.label, end.last)).collect()
    }

    /// Whether one label is kept of each node, and what it costs does not depend on who handed to it.
    fn first_decides(&self) -> bool {
        self.sets == 1 && self.goal.weights.latency == 0.0
    }
}

/// A label that goes on.
#[derive(Clone, Copy)]
struct Origin {
    label: Label,
    last: usize,
    /// In [`Kept`].
    at: usize,
}

/// What a search knows.
struct Field<'a> {
    beam: &'a Beam<'a>,
    problem: &'a Problem,
    /// Nodes that may be used, each with its hash.
    open: Vec<(usize, u64)>,
    /// By boundary and place among them: the furthest end of a stage that memory and the cap allow.
    furthest: Grid<usize>,
    /// By boundary and place: as many labels as there are sets.
    slots: Vec<Label>,
    kept: Kept,
}

impl<'a> Field<'a> {
    /// None if the nodes together do not hold the layers within the cap.
    fn new(beam: &'a Beam<'a>, problem: &'a Problem, taken: &[bool]) -> Option<Self> {
        let free = |node: &usize| !taken.get(*node).copied().unwrap_or(false);
        let hashed = |node: usize| (node, tensorlink_draws::word(node as u64, 1) / (1 << 12));
        let capped = beam.goal.cap < f64::MAX;
        let end = |node: usize, first: usize| match capped {
            true => problem.furthest_within(node, first, beam.goal.cap),
            false => problem.furthest(node, first),
        };
        let ends = |node: usize| (0..problem.layers).map(|first| end(node, first)).collect::<Vec<usize>>();
        let longest = |ends: &Vec<usize>| ends.iter().enumerate().map(|(first, end)| end - first).max().unwrap_or(0);
        let holding = (0..problem.nodes()).filter(free).map(|node| (hashed(node), ends(node)));
        // Who holds no layer is in no chain.
        let holding = holding.filter(|(_, ends)| longest(ends) > 0);
        let (open, by_node): (Vec<(usize, u64)>, Vec<Vec<usize>>) = holding.unzip();
        if by_node.iter().map(longest).sum::<usize>() < problem.layers {
            return None;
        }
        let ends =
            (0..problem.layers).flat_map(|first| by_node.iter().filter_map(move |ends| ends.get(first)).copied());
        let furthest = Grid::new(open.len(), ends, 0);
        let slots = vec![FREE; (problem.layers + 1) * open.len() * beam.sets];
        let kept = Kept { labels: vec![], visited: vec![], words: problem.nodes().div_ceil(64) };
        Some(Self { beam, problem, open, furthest, slots, kept })
    }

    /// The labels of a boundary that go on.
    fn gather(&mut self, boundary: usize, into: &mut Vec<Origin>) {
        into.clear();
        let sets = self.beam.sets;
        let group = self.open.len() * sets;
        for (at, label) in self.slots.iter().skip(boundary * group).take(group).enumerate() {
            if label.rank < f64::INFINITY
                && let Some((last, _)) = self.open.get(at / sets)
            {
                into.push(Origin { label: *label, last: *last, at: 0 });
            }
        }
        if into.len() > self.beam.width {
            into.select_nth_unstable_by(self.beam.width, |a, b| a.label.rank.total_cmp(&b.label.rank));
            into.truncate(self.beam.width);
        }
        for from in into {
            from.at = self.kept.labels.len();
            self.kept.add(from.label, from.last);
        }
    }

    /// Whether a label may hand to a node.
    #[inline]
    fn may_follow(&self, from: &Origin, boundary: usize, place: usize) -> bool {
        let Some((node, _)) = self.open.get(place) else { return false };
        self.furthest.at(boundary, place) > boundary
            && !self.kept.has(from.at, *node)
            && self.problem.flow(from.last, *node, boundary) <= self.beam.goal.cap
    }

    /// Lets a node take the layers from a boundary on.
    #[inline]
    fn advance(&mut self, from: Option<&Origin>, boundary: usize, place: usize) {
        let Self { beam, problem, .. } = *self;
        let Some((node, hash)) = self.open.get(place).copied() else { return };
        let most = self.furthest.at(boundary, place);
        if most <= boundary {
            return;
        }
        let weights = beam.goal.weights;
        let mut entered = at(beam.enter, node);
        let (mut set, mut parent, mut first) = (0, u32::MAX, node as u32);
        if let Some(from) = from {
            entered += from.label.cost;
            if weights.latency > 0.0 {
                entered += weights.latency * problem.wait(from.last, node, boundary);
            }
            (set, parent, first) = (from.label.set, from.at as u32, from.label.first);
        }
        let set: u64 = set + hash;
        let per_second = weights.latency + weights.energy * problem.watts(node);
        let back = if weights.latency > 0.0 { weights.latency * problem.back(node, first as usize) } else { 0.0 };
        let span = most - boundary;
        for shorter in 0..=beam.shorter.min(span - 1) {
            let end = if beam.shorter >= span { most - shorter } else { most - shorter * span / (beam.shorter + 1) };
            let cost =
                if per_second > 0.0 { entered + per_second * problem.seconds(node, boundary, end) } else { entered };
            if cost >= beam.bound {
                continue;
            }
            let rest = if end == problem.layers { back } else { back + at(beam.leave, node) };
            let label = Label { cost, rank: cost + rest, set, parent, first };
            let group = (end * self.open.len() + place) * beam.sets;
            if let Some(group) = self.slots.get_mut(group..group + beam.sets) {
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
