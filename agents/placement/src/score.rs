//! One number for a link and a node, by which a large fleet is thinned out before the search.
//!
//! A link's score is α times its milliseconds and β by its gigabits a second, as DCI's proximity has it. Alone, that
//! would prefer slow neighbours to a fast node some way off; γ times the binary logarithm of a node's capability is
//! taken off.

use crate::constraints::Constraints;
use crate::fleet::Fleet;
use crate::model::{Kind, ModelProfile};
use crate::number::{Invalid, at_least_zero};
use crate::objective::Objective;
use crate::proximity::Link;
use crate::table::mark;

/// Weights of a score.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Score {
    /// Of a millisecond.
    pub alpha: f64,
    /// Of a second for a gigabit.
    pub beta: f64,
    /// Of a doubled capability.
    pub gamma: f64,
}

impl Default for Score {
    /// As measured best in `docs/src/benchmarks/placement.md`.
    fn default() -> Self {
        Self { alpha: 0.1, beta: 10.0, gamma: 20.0 }
    }
}

/// Layers that a node must hold for its speed to count whole.
const HELD: f64 = 4.0;
/// Places in the fleet around which nodes are chosen.
const ANCHORS: usize = 6;
/// Seconds, one way, that anchors are apart at least.
const APART: f64 = 0.02;

impl Score {
    /// # Errors
    /// For a weight that is negative or no number.
    pub fn check(&self) -> Result<(), Invalid> {
        [self.alpha, self.beta, self.gamma]
            .into_iter()
            .try_for_each(|weight| at_least_zero("weights of a score", weight))
    }

    /// Of a link: less is nearer.
    pub fn of(&self, link: Link) -> f64 {
        self.alpha * link.seconds * 1e3 + self.beta * 1e9 / (8.0 * link.rate)
    }

    /// The `count` nodes that look best for an objective, of those that the constraints admit: those with the best
    /// scores around each of a few capable nodes far apart from each other.
    pub(crate) fn candidates(
        &self,
        fleet: &Fleet,
        model: &ModelProfile,
        kind: Kind,
        objective: Objective,
        constraints: &Constraints,
        count: usize,
    ) -> Vec<usize> {
        let admitted = |node: &usize| fleet.nodes.get(*node).is_some_and(|profile| constraints.admits(profile));
        let mut capable: Vec<(usize, f64)> = (0..fleet.nodes.len())
            .filter(admitted)
            .map(|node| (node, capability(fleet, model, kind, objective, constraints, node)))
            .filter(|(_, capability)| *capability > 0.0)
            .collect();
        if capable.len() <= count {
            return capable.into_iter().map(|(node, _)| node).collect();
        }
        capable.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut anchors: Vec<usize> = Vec::new();
        for (node, _) in &capable {
            let apart = |anchor: &usize| fleet.link(*anchor, *node).seconds > APART;
            if anchors.len() < ANCHORS && anchors.iter().all(apart) {
                anchors.push(*node);
            }
        }
        let mut chosen = vec![false; fleet.nodes.len()];
        let mut rankings: Vec<_> = anchors
            .iter()
            .map(|anchor| {
                let mut ranked: Vec<(f64, usize)> = capable
                    .iter()
                    .map(|(node, capability)| {
                        let (there, back) = (fleet.link(*anchor, *node), fleet.link(*node, *anchor));
                        (0.5 * (self.of(there) + self.of(back)) - self.gamma * capability.log2(), *node)
                    })
                    .collect();
                ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
                ranked.into_iter()
            })
            .collect();
        let mut nodes = Vec::with_capacity(count);
        // The anchors choose in turn.
        while nodes.len() < count {
            for ranking in &mut rankings {
                if let Some((_, node)) = ranking.find(|(_, node)| !chosen.get(*node).copied().unwrap_or(true)) {
                    mark(&mut chosen, &[node], true);
                    nodes.push(node);
                }
            }
        }
        nodes.truncate(count);
        nodes
    }

    /// The fleet in groups of at most `count`, each around the most capable node that is in none yet.
    pub(crate) fn groups(
        &self,
        fleet: &Fleet,
        model: &ModelProfile,
        kind: Kind,
        constraints: &Constraints,
        count: usize,
    ) -> Vec<Vec<usize>> {
        let of = |node| capability(fleet, model, kind, Objective::Throughput, constraints, node);
        let mut left: Vec<(usize, f64)> = (0..fleet.nodes.len())
            .filter(|node| fleet.nodes.get(*node).is_some_and(|profile| constraints.admits(profile)))
            .map(|node| (node, of(node)))
            .filter(|(_, capability)| *capability > 0.0)
            .collect();
        left.sort_by(|a, b| b.1.total_cmp(&a.1));
        // Even groups, so that the last is no remnant.
        let groups = left.len().div_ceil(count.max(1)).max(1);
        let size = left.len().div_ceil(groups).max(1);
        let mut grouped = Vec::with_capacity(groups);
        while let Some((anchor, _)) = left.first().copied() {
            left.sort_by(|a, b| fleet.link(anchor, a.0).seconds.total_cmp(&fleet.link(anchor, b.0).seconds));
            let rest = left.split_off(size.min(left.len()));
            grouped.push(left.into_iter().map(|(node, _)| node).collect());
            left = rest;
            left.sort_by(|a, b| b.1.total_cmp(&a.1));
        }
        grouped
    }
}

/// Whole models in a unit of what the objective counts: seconds, money or joules. Zero for a node that holds no layer.
fn capability(
    fleet: &Fleet,
    model: &ModelProfile,
    kind: Kind,
    objective: Objective,
    constraints: &Constraints,
    node: usize,
) -> f64 {
    let Some(profile) = fleet.nodes.get(node) else { return 0.0 };
    let load = constraints.load(node);
    let costs = || model.layers.iter().map(|layer| layer.cost(kind));
    let macs: f64 = costs().map(|cost| cost.macs).sum();
    let reads: f64 = costs().map(|cost| cost.reads).sum();
    let seconds = (macs / profile.rate(model.precision)).max(reads / profile.memory_rate) / (1.0 - load.share);
    let unit = model.bytes(kind) / model.layers.len() as f64;
    let held = (profile.free_bytes - load.bytes) / unit;
    let smallest =
        model.layers.iter().map(|layer| layer.weights + layer.cost(kind).state).fold(f64::INFINITY, f64::min);
    if profile.free_bytes - load.bytes < smallest {
        return 0.0;
    }
    let spent = match objective {
        Objective::Price => seconds * profile.price_per_hour.max(1e-9),
        Objective::Energy => seconds * profile.watts.max(1e-9),
        Objective::Latency | Objective::Throughput | Objective::Mix(_) => seconds,
    };
    (held / HELD).clamp(0.1, 1.0) / spent
}
