//! Chains of stages, and what they cost by what is known of the fleet.

use crate::constraints::Constraints;
use crate::fleet::Fleet;
use crate::model::{Kind, ModelProfile};
use crate::objective::Figures;

/// The layers that one node computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// Its position in the fleet.
    pub node: usize,
    /// The first layer.
    pub first: usize,
    /// The layer after the last.
    pub end: usize,
}

/// Stages in the order in which a unit of work passes them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chain(pub Vec<Stage>);

/// Replicas, each of as many rings as the security level says.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Replica by replica, ring by ring.
    pub chains: Vec<Chain>,
    /// How many chains in a row compute the same.
    pub rings: usize,
}

/// Why a chain is no placement of a model on a fleet. A planner of this crate returns none such.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum Broken {
    /// Layers are missing, twice there, or out of order.
    #[error("stage {0} does not begin where the one before ends, or is empty, or the last layers are missing")]
    Layers(usize),
    /// Another number of stages than is asked for.
    #[error("the chain has {got} stages, {asked} are asked for")]
    Length {
        /// Asked for.
        asked: usize,
        /// Of the chain.
        got: usize,
    },
    /// A node that the fleet does not have, or that is there twice.
    #[error("node {0} is unknown, or in the chain twice")]
    Node(usize),
    /// More than a node's memory or disk holds.
    #[error("node {node} cannot hold {bytes:.0} bytes")]
    Memory {
        /// Which.
        node: usize,
        /// What its layers and their state take, with what it already runs.
        bytes: f64,
    },
    /// A node without the stake or the class that is asked for.
    #[error("node {0} has not the stake or the tier that is asked for")]
    Refused(usize),
    /// A hop below the threshold.
    #[error("the link from {from} to {to} is slower than asked for")]
    Slow {
        /// Who sends.
        from: usize,
        /// Who receives.
        to: usize,
    },
}

/// What rounding may add to a sum of bytes.
const ROUNDING: f64 = 1.0 + 1e-9;

/// Seconds that a node takes for layers `first..end`: it computes and reads at once, and the slower decides. Infinite
/// for a node or layers that there are not.
pub(crate) fn seconds(fleet: &Fleet, model: &ModelProfile, kind: Kind, constraints: &Constraints, stage: Stage) -> f64 {
    let (Some(node), Some(layers)) = (fleet.nodes.get(stage.node), model.layers.get(stage.first..stage.end)) else {
        return f64::INFINITY;
    };
    let costs = layers.iter().map(|layer| layer.cost(kind));
    let (macs, reads) = costs.fold((0.0, 0.0), |(macs, reads), cost| (macs + cost.macs, reads + cost.reads));
    let free = 1.0 - constraints.load(stage.node).share;
    (macs / node.rate(model.precision)).max(reads / node.memory_rate) / free
}

impl Chain {
    /// What the chain costs, and whether it keeps the constraints that concern a chain alone.
    ///
    /// This is the definition by which every planner is judged; planners compute the same from prefix sums.
    ///
    /// # Errors
    /// [`Broken`], with the first thing found wrong.
    pub fn figures(
        &self,
        fleet: &Fleet,
        model: &ModelProfile,
        kind: Kind,
        constraints: &Constraints,
    ) -> Result<Figures, Broken> {
        let mut figures = Figures::default();
        let mut price_per_second = 0.0;
        let mut next = 0;
        for (at, stage) in self.0.iter().enumerate() {
            let node = fleet.nodes.get(stage.node).ok_or(Broken::Node(stage.node))?;
            if self.0.iter().take(at).any(|earlier| earlier.node == stage.node) {
                return Err(Broken::Node(stage.node));
            }
            let layers = model.layers.get(stage.first..stage.end).unwrap_or_default();
            if stage.first != next || layers.is_empty() {
                return Err(Broken::Layers(at));
            }
            next = stage.end;
            if !constraints.admits(node) {
                return Err(Broken::Refused(stage.node));
            }
            let weights: f64 = layers.iter().map(|layer| layer.weights).sum();
            let state: f64 = layers.iter().map(|layer| layer.cost(kind).state).sum();
            let bytes = weights + state + constraints.load(stage.node).bytes;
            if bytes > node.free_bytes * ROUNDING || weights > node.disk_bytes * ROUNDING {
                return Err(Broken::Memory { node: stage.node, bytes });
            }
            let seconds = seconds(fleet, model, kind, constraints, *stage);
            figures.latency += seconds;
            figures.energy += seconds * node.watts;
            figures.bottleneck = figures.bottleneck.max(seconds);
            price_per_second += node.price_per_hour / 3600.0;
            if let Some(following) = self.0.get(at + 1) {
                let handed = layers.last().map_or(0.0, |layer| layer.cost(kind).activations);
                let hop = hop(fleet, kind, constraints, stage.node, following.node)
                    .ok_or(Broken::Slow { from: stage.node, to: following.node })?;
                figures.latency += hop.wait + handed * hop.wait_per_byte;
                figures.bottleneck = figures.bottleneck.max(handed * hop.flow_per_byte);
            }
        }
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else { return Err(Broken::Layers(0)) };
        if next != model.layers.len() {
            return Err(Broken::Layers(self.0.len()));
        }
        if let Some(asked) = constraints.stages.filter(|asked| *asked != self.0.len()) {
            return Err(Broken::Length { asked, got: self.0.len() });
        }
        figures.latency += way_back(fleet, kind, last.node, first.node);
        figures.price = price_per_second * figures.bottleneck;
        Ok(figures)
    }
}

/// What handing on takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Hop {
    /// Seconds until the first byte is there; in training, of both directions.
    pub(crate) wait: f64,
    /// Seconds for each byte after that; in training, of both directions, one after the other.
    pub(crate) wait_per_byte: f64,
    /// Seconds for each byte on a busy link; in training, of the slower direction.
    pub(crate) flow_per_byte: f64,
}

/// The hop between two nodes; [`None`] if it is below the threshold. Training hands gradients back over the
/// reverse link.
pub(crate) fn hop(fleet: &Fleet, kind: Kind, constraints: &Constraints, from: usize, to: usize) -> Option<Hop> {
    let there = fleet.link(from, to);
    let back = if kind == Kind::Training { Some(fleet.link(to, from)) } else { None };
    let rate = there.rate.min(back.map_or(f64::INFINITY, |link| link.rate));
    (rate >= constraints.bandwidth && there.seconds.is_finite()).then(|| Hop {
        wait: there.seconds + back.map_or(0.0, |link| link.seconds),
        wait_per_byte: 1.0 / there.rate + back.map_or(0.0, |link| 1.0 / link.rate),
        flow_per_byte: 1.0 / rate,
    })
}

/// Seconds for the result, a few bytes, from the last node to the first. Gradients return along the chain instead.
pub(crate) fn way_back(fleet: &Fleet, kind: Kind, last: usize, first: usize) -> f64 {
    if kind == Kind::Training || last == first { 0.0 } else { fleet.link(last, first).seconds }
}
