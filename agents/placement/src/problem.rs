//! A request made dense: prefix sums over layers, arrays over the nodes that may take part, tables over their links.

use crate::constraints::Constraints;
use crate::fleet::Fleet;
use crate::model::{Kind, ModelProfile};
use crate::node::Profile;
use crate::objective::{Objective, Weights};
use crate::plan::{Chain, Hop, Stage, hop, way_back};
use crate::table::{Grid, Sums, at};

/// A hop that no chain may take.
const CLOSED: Hop = Hop { wait: 0.0, wait_per_byte: 0.0, flow_per_byte: f64::INFINITY };

/// What is planned with. Nodes are named by their position here; [`Problem::ids`] has that in the fleet.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) ids: Vec<usize>,
    pub(crate) layers: usize,
    /// Stages of a chain, if so many are asked for.
    pub(crate) stages: Option<usize>,
    macs: Sums,
    reads: Sums,
    /// Bytes that cross each boundary.
    handed: Vec<f64>,
    seconds_per_mac: Vec<f64>,
    seconds_per_read: Vec<f64>,
    watts: Vec<f64>,
    /// A second.
    price: Vec<f64>,
    /// By who hands on, and to whom.
    hops: Grid<Hop>,
    /// By the last node, and the first.
    back: Grid<f64>,
    /// By node and first layer: the furthest end that memory and disk hold.
    furthest: Grid<usize>,
    /// Bytes of memory that a node has for layers and their state.
    memory: Vec<f64>,
    /// Bytes that layers and their state take.
    held: Sums,
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
        let layers = model.layers.len();
        let admitted = |node: usize| Some((node, fleet.nodes.get(node).filter(|profile| constraints.admits(profile))?));
        let (ids, profiles): (Vec<usize>, Vec<&Profile>) = nodes.into_iter().filter_map(admitted).unzip();
        let costs = || model.layers.iter().map(|layer| layer.cost(kind));
        let weights = Sums::of(model.layers.iter().map(|layer| layer.weights));
        let held = Sums::of(model.layers.iter().map(|layer| layer.weights + layer.cost(kind).state));
        let named = || ids.iter().zip(&profiles);
        let free = |node: &usize| 1.0 - constraints.load(*node).share;
        let memory: Vec<f64> =
            named().map(|(node, profile)| profile.free_bytes - constraints.load(*node).bytes).collect();
        let ends = profiles.iter().zip(&memory).flat_map(|(profile, memory)| {
            ends(layers, |first, end| {
                held.between(first, end) <= *memory && weights.between(first, end) <= profile.disk_bytes
            })
        });
        let furthest = Grid::new(layers, ends, 0);
        let pairs = || ids.iter().flat_map(|from| ids.iter().map(move |to| (*from, *to)));
        let hops = pairs().map(|(from, to)| hop(fleet, kind, constraints, from, to).unwrap_or(CLOSED));
        let back = pairs().map(|(from, to)| way_back(fleet, kind, from, to));
        Self {
            layers,
            stages: constraints.stages,
            macs: Sums::of(costs().map(|cost| cost.macs)),
            reads: Sums::of(costs().map(|cost| cost.reads)),
            handed: std::iter::once(0.0).chain(costs().map(|cost| cost.activations)).collect(),
            seconds_per_mac: named().map(|(node, profile)| 1.0 / profile.rate(model.precision) / free(node)).collect(),
            seconds_per_read: named().map(|(node, profile)| 1.0 / profile.memory_rate / free(node)).collect(),
            watts: profiles.iter().map(|profile| profile.watts).collect(),
            price: profiles.iter().map(|profile| profile.price_per_hour / 3600.0).collect(),
            hops: Grid::new(ids.len(), hops, CLOSED),
            back: Grid::new(ids.len(), back, f64::INFINITY),
            furthest,
            memory,
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
        let compute = self.macs.between(first, end) * at(&self.seconds_per_mac, node);
        let read = self.reads.between(first, end) * at(&self.seconds_per_read, node);
        compute.max(read)
    }

    /// The same with stages of so many layers at most.
    pub(crate) fn limited(&self, longest: usize) -> Self {
        let mut limited = self.clone();
        for row in limited.furthest.rows_mut() {
            for (first, end) in row.iter_mut().enumerate() {
                *end = (*end).min(first + longest);
            }
        }
        limited
    }

    /// The furthest end of a stage that a node holds.
    #[inline]
    pub(crate) fn furthest(&self, node: usize, first: usize) -> usize {
        self.furthest.at(node, first)
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
        at(&self.handed, boundary) * self.hops.at(from, to).flow_per_byte
    }

    /// Seconds until a unit has crossed a boundary, on a link that is open.
    #[inline]
    pub(crate) fn wait(&self, from: usize, to: usize, boundary: usize) -> f64 {
        let hop = self.hops.at(from, to);
        hop.wait + at(&self.handed, boundary) * hop.wait_per_byte
    }

    /// Seconds from the last node back to the first.
    #[inline]
    pub(crate) fn back(&self, last: usize, first: usize) -> f64 {
        self.back.at(last, first)
    }

    /// The most that crosses a boundary.
    pub(crate) fn most_handed(&self) -> usize {
        let most = (0..self.layers).max_by(|a, b| at(&self.handed, *a).total_cmp(&at(&self.handed, *b)));
        most.unwrap_or(0)
    }

    /// Watts that a node draws while it computes.
    #[inline]
    pub(crate) fn watts(&self, node: usize) -> f64 {
        at(&self.watts, node)
    }

    /// What a second of a node costs.
    #[inline]
    pub(crate) fn price(&self, node: usize) -> f64 {
        at(&self.price, node)
    }

    /// Bytes of memory that a node has for layers and their state.
    pub(crate) fn memory(&self, node: usize) -> f64 {
        self.memory.get(node).copied().unwrap_or(0.0)
    }

    /// Seconds that all layers would take a node, whatever it holds.
    pub(crate) fn alone(&self, node: usize) -> f64 {
        self.seconds(node, 0, self.layers)
    }

    /// Multiply-adds of layers `first..end`.
    pub(crate) fn multiply_adds(&self, first: usize, end: usize) -> f64 {
        self.macs.between(first, end)
    }

    /// Bytes that layers `first..end` and their state take.
    pub(crate) fn bytes(&self, first: usize, end: usize) -> f64 {
        self.held.between(first, end)
    }

    /// No chain of these nodes computes the layers from a boundary on with a smaller bottleneck, if only it could share
    /// them evenly. Zero at the end, infinite without nodes.
    pub(crate) fn pooled(&self, boundary: usize, nodes: impl Iterator<Item = usize>) -> f64 {
        if boundary == self.layers {
            return 0.0;
        }
        let (mut computed, mut read) = (0.0, 0.0);
        for node in nodes {
            computed += 1.0 / at(&self.seconds_per_mac, node);
            read += 1.0 / at(&self.seconds_per_read, node);
        }
        let macs = self.macs.between(boundary, self.layers);
        let reads = self.reads.between(boundary, self.layers);
        // Without nodes both quotients are infinite, but for that of no reads.
        (macs / computed).max(if reads > 0.0 { reads / read } else { 0.0 })
    }

    /// An order with its ends, as a chain of the fleet's nodes.
    pub(crate) fn chain(&self, order: &[usize], ends: &[usize]) -> Chain {
        let firsts = std::iter::once(0).chain(ends.iter().copied());
        let stages = order.iter().zip(firsts).zip(ends);
        let stage = |((node, first), end): ((&usize, usize), &usize)| {
            Some(Stage { node: *self.ids.get(*node)?, first, end: *end })
        };
        Chain(stages.filter_map(stage).collect())
    }
}

/// By first layer: the furthest end of a stage that fits.
fn ends(layers: usize, fits: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut end = 0;
    let ends = (0..layers).map(|first| {
        end = end.max(first);
        while end < layers && fits(first, end + 1) {
            end += 1;
        }
        end
    });
    ends.collect()
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
