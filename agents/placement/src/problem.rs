//! A request made dense: prefix sums over layers, arrays over the nodes that may take part, tables over their links.

use crate::constraints::Constraints;
use crate::fleet::Fleet;
use crate::model::{Kind, ModelProfile};
use crate::objective::{Objective, Weights};
use crate::plan::{Chain, Hop, Stage, hop, way_back};

/// A hop that no chain may take.
const CLOSED: Hop = Hop { wait: 0.0, wait_per_byte: 0.0, flow_per_byte: f64::INFINITY };

/// What is planned with. Nodes are named by their position here; [`Problem::ids`] has that in the fleet.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) ids: Vec<usize>,
    pub(crate) layers: usize,
    /// Sums over the layers before each, one more than there are layers.
    macs: Vec<f64>,
    reads: Vec<f64>,
    /// Bytes that cross each boundary.
    handed: Vec<f64>,
    seconds_per_mac: Vec<f64>,
    seconds_per_read: Vec<f64>,
    pub(crate) watts: Vec<f64>,
    /// A second.
    pub(crate) price: Vec<f64>,
    hops: Vec<Hop>,
    back: Vec<f64>,
    /// By node and first layer: the furthest end that memory and disk hold.
    furthest: Vec<usize>,
    /// Bytes of memory that a node has for layers and their state.
    pub(crate) memory: Vec<f64>,
    /// Sums of the bytes that layers and their state take.
    held: Vec<f64>,
}

impl Problem {
    /// Of the nodes named, those that the constraints admit.
    pub(crate) fn new(
        fleet: &Fleet,
        model: &ModelProfile,
        kind: Kind,
        constraints: &Constraints,
        nodes: impl IntoIterator<Item = usize>,
    ) -> Self {
        let admitted = |node: &usize| fleet.nodes.get(*node).is_some_and(|profile| constraints.admits(profile));
        let ids: Vec<usize> = nodes.into_iter().filter(admitted).collect();
        let sums = |of: &dyn Fn(usize) -> f64| {
            let mut sum = 0.0;
            let added = (0..model.layers.len()).map(|at| {
                sum += of(at);
                sum
            });
            std::iter::once(0.0).chain(added).collect::<Vec<f64>>()
        };
        let cost = |at: usize| model.layers[at].cost(kind);
        let weights = sums(&|at| model.layers[at].weights);
        let held = sums(&|at| model.layers[at].weights + cost(at).state);
        let free = |node: &usize| 1.0 - constraints.load(*node).share;
        let over = |of: &dyn Fn(&usize) -> f64| ids.iter().map(of).collect::<Vec<f64>>();
        let mut furthest = Vec::with_capacity(ids.len() * model.layers.len());
        for node in &ids {
            let memory = fleet.nodes[*node].free_bytes - constraints.load(*node).bytes;
            let disk = fleet.nodes[*node].disk_bytes;
            let mut end = 0;
            for first in 0..model.layers.len() {
                end = end.max(first);
                while end < model.layers.len()
                    && held[end + 1] - held[first] <= memory
                    && weights[end + 1] - weights[first] <= disk
                {
                    end += 1;
                }
                furthest.push(end);
            }
        }
        let pairs = || ids.iter().flat_map(|from| ids.iter().map(move |to| (*from, *to)));
        Self {
            layers: model.layers.len(),
            macs: sums(&|at| cost(at).macs),
            reads: sums(&|at| cost(at).reads),
            handed: (0..=model.layers.len())
                .map(|at| at.checked_sub(1).map_or(0.0, |at| cost(at).activations))
                .collect(),
            seconds_per_mac: over(&|node| 1.0 / fleet.nodes[*node].rate(model.precision) / free(node)),
            seconds_per_read: over(&|node| 1.0 / fleet.nodes[*node].memory_rate / free(node)),
            watts: over(&|node| fleet.nodes[*node].watts),
            price: over(&|node| fleet.nodes[*node].price_per_hour / 3600.0),
            hops: pairs().map(|(from, to)| hop(fleet, kind, constraints, from, to).unwrap_or(CLOSED)).collect(),
            back: pairs().map(|(from, to)| way_back(fleet, kind, from, to)).collect(),
            furthest,
            memory: over(&|node| fleet.nodes[*node].free_bytes - constraints.load(*node).bytes),
            held,
            ids,
        }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.ids.len()
    }

    /// Seconds that a node takes for layers `first..end`.
    #[inline]
    pub(crate) fn seconds(&self, node: usize, first: usize, end: usize) -> f64 {
        let compute = (self.macs[end] - self.macs[first]) * self.seconds_per_mac[node];
        let read = (self.reads[end] - self.reads[first]) * self.seconds_per_read[node];
        compute.max(read)
    }

    /// The same with stages of so many layers at most.
    pub(crate) fn limited(&self, longest: usize) -> Self {
        let mut limited = self.clone();
        for (at, end) in limited.furthest.iter_mut().enumerate() {
            *end = (*end).min(at % self.layers + longest);
        }
        limited
    }

    /// The furthest end of a stage that a node holds.
    #[inline]
    pub(crate) fn furthest(&self, node: usize, first: usize) -> usize {
        self.furthest[node * self.layers + first]
    }

    /// The furthest end of a stage that a node holds and computes within a time.
    pub(crate) fn furthest_within(&self, node: usize, first: usize, cap: f64) -> usize {
        let (mut low, mut high) = (first, self.furthest(node, first));
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.seconds(node, first, middle) <= cap { low = middle } else { high = middle - 1 }
        }
        low
    }

    /// Seconds of a transfer over a busy link at a boundary; infinite where the link is closed.
    #[inline]
    pub(crate) fn flow(&self, from: usize, to: usize, boundary: usize) -> f64 {
        self.handed[boundary] * self.hops[from * self.ids.len() + to].flow_per_byte
    }

    /// Seconds until a unit has crossed a boundary, on a link that is open.
    #[inline]
    pub(crate) fn wait(&self, from: usize, to: usize, boundary: usize) -> f64 {
        let hop = &self.hops[from * self.ids.len() + to];
        hop.wait + self.handed[boundary] * hop.wait_per_byte
    }

    /// Seconds from the last node back to the first.
    #[inline]
    pub(crate) fn back(&self, last: usize, first: usize) -> f64 {
        self.back[last * self.ids.len() + first]
    }

    /// The most that crosses a boundary.
    pub(crate) fn most_handed(&self) -> usize {
        let most = (0..self.layers).max_by(|a, b| self.handed[*a].total_cmp(&self.handed[*b]));
        most.unwrap_or(0)
    }

    /// Seconds that all layers would take a node, whatever it holds.
    pub(crate) fn alone(&self, node: usize) -> f64 {
        self.seconds(node, 0, self.layers)
    }

    /// Multiply-adds of layers `first..end`.
    pub(crate) fn multiply_adds(&self, first: usize, end: usize) -> f64 {
        self.macs[end] - self.macs[first]
    }

    /// Bytes that layers `first..end` and their state take.
    pub(crate) fn bytes(&self, first: usize, end: usize) -> f64 {
        self.held[end] - self.held[first]
    }

    /// No chain of these nodes computes the layers from a boundary on with a smaller bottleneck, if only it could share
    /// them evenly. Zero at the end, infinite without nodes.
    pub(crate) fn pooled(&self, boundary: usize, nodes: impl Iterator<Item = usize>) -> f64 {
        if boundary == self.layers {
            return 0.0;
        }
        let (mut computed, mut read) = (0.0, 0.0);
        for node in nodes {
            computed += 1.0 / self.seconds_per_mac[node];
            read += 1.0 / self.seconds_per_read[node];
        }
        let macs = self.macs[self.layers] - self.macs[boundary];
        let reads = self.reads[self.layers] - self.reads[boundary];
        // Without nodes both quotients are infinite, but for that of no reads.
        (macs / computed).max(if reads > 0.0 { reads / read } else { 0.0 })
    }

    /// An order with its ends, as a chain of the fleet's nodes.
    pub(crate) fn chain(&self, order: &[usize], ends: &[usize]) -> Chain {
        let firsts = std::iter::once(0).chain(ends.iter().copied());
        let stages = order.iter().zip(firsts).zip(ends);
        Chain(stages.map(|((node, first), end)| Stage { node: self.ids[*node], first, end: *end }).collect())
    }
}

/// An objective with a bound on every stage and transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    pub(crate) weights: Weights,
    /// Seconds that no stage and no transfer may exceed. The largest float: none.
    pub(crate) cap: f64,
}

impl Goal {
    pub(crate) fn new(objective: Objective) -> Self {
        Self { weights: objective.weights(), cap: f64::MAX }
    }

    /// Whether sums over stages count.
    pub(crate) fn adds(&self) -> bool {
        self.weights.latency > 0.0 || self.weights.energy > 0.0
    }

    /// Whether the bottleneck counts.
    pub(crate) fn bounds(&self) -> bool {
        self.weights.bottleneck > 0.0 || self.weights.price > 0.0
    }

    /// What a second of the bottleneck counts for nodes of a price.
    pub(crate) fn per_bottleneck(&self, price: f64) -> f64 {
        self.weights.bottleneck + self.weights.price * price
    }
}
