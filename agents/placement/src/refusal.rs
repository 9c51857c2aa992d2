//! When no plan fits: which constraint is the tightest, and what would mend it.

use crate::constraints::{Constraints, Replicas};
use crate::node::Tier;
use crate::number::Invalid;
use crate::place::Request;
use crate::plan::Plan;
use crate::strategy::Strategy;

/// Why there is no plan.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The request itself is wrong.
    #[error("{0}")]
    Invalid(#[from] Invalid),
    /// A rule of others, and more than one chain. Ask for `best`.
    #[error("the strategy {0} knows single chains only: ask for the strategy best, or for one ring and one replica")]
    SingleChains(Strategy),
    /// A rule of others finds nothing where the joint search does. Ask for `best`.
    #[error("the strategy {0} finds no plan, but there is one: ask for the strategy best")]
    Rule(Strategy),
    /// No worker holds this layer.
    #[error(
        "memory: layer {layer} takes {bytes:.0} bytes, and the largest worker has {largest:.0} free: a worker with more \
         memory is needed, or a lane ended"
    )]
    Layer {
        /// Counted from 0.
        layer: usize,
        /// With its state.
        bytes: f64,
        /// Of any worker that is admitted.
        largest: f64,
    },
    /// All workers together do not hold the model.
    #[error("memory: the model takes {bytes:.0} bytes, and all workers have {free:.0} free: {:.0} more are needed",
        bytes - free)]
    Memory {
        /// Of all chains that are asked for.
        bytes: f64,
        /// Of all workers that are admitted.
        free: f64,
    },
    /// Enough memory in sum, but not in whole layers that follow each other over links that are open.
    #[error(
        "memory: {free:.0} bytes are free for {bytes:.0}, but in pieces that whole layers do not fill: larger workers are needed"
    )]
    Pieces {
        /// Of all chains that are asked for.
        bytes: f64,
        /// Of all workers that are admitted.
        free: f64,
    },
    /// Too few have the stake.
    #[error("stake: too few workers have {asked}; with {would} there is a plan")]
    Stake {
        /// The least stake asked for.
        asked: f64,
        /// The most with which there is a plan.
        would: f64,
    },
    /// Too few have the class.
    #[error("tier: too few workers are of tier {asked:?} or better; with {would:?} there is a plan")]
    Tier {
        /// The least tier asked for.
        asked: Tier,
        /// The best with which there is a plan.
        would: Tier,
    },
    /// Too few links have the bandwidth.
    #[error("bandwidth: too few links have {asked:.0} bytes a second; with {would:.0} there is a plan")]
    Bandwidth {
        /// The threshold asked for.
        asked: f64,
        /// One with which there is a plan.
        would: f64,
    },
    /// Lanes that already run leave too little.
    #[error("running lanes: they hold {bytes:.0} bytes; when they have ended there is a plan")]
    Running {
        /// Of all nodes.
        bytes: f64,
    },
    /// No chain of so many stages.
    #[error("stages: no {asked} workers hold the model in as many stages; with {would} there is a plan")]
    Stages {
        /// Stages asked for.
        asked: usize,
        /// Stages with which there is a plan.
        would: usize,
    },
    /// Too few operators for the security level.
    #[error("security level: {asked} rings without a common operator were not found; {would} are")]
    Rings {
        /// Rings asked for.
        asked: usize,
        /// Rings for which there is a plan.
        would: usize,
    },
    /// Too few workers for the replicas.
    #[error("replicas: {asked} were not found; {would} are")]
    Replicas {
        /// Replicas asked for.
        asked: usize,
        /// Replicas for which there is a plan.
        would: usize,
    },
    /// Any of these constraints alone, the one that has to give least first.
    #[error("{}", listed(.0))]
    Either(Vec<Self>),
    /// Several constraints together.
    #[error("no single constraint: without stake, tier, bandwidth and running lanes there is a plan; loosen several")]
    Several,
}

/// The chains of a strategy.
///
/// # Errors
/// [`Refusal`], which says what to change.
pub fn place(strategy: Strategy, request: &Request<'_>) -> Result<Plan, Refusal> {
    request.check()?;
    if let Some(plan) = request.attempt(strategy) {
        return Ok(plan);
    }
    let Constraints { rings, replicas, .. } = request.constraints;
    if strategy != Strategy::Best {
        if rings > 1 || replicas != Replicas::Exactly(1) {
            return Err(Refusal::SingleChains(strategy));
        }
        if request.attempt(Strategy::Best).is_some() {
            return Err(Refusal::Rule(strategy));
        }
    }
    Err(tightest(request))
}

/// How often a threshold is halved, and steps of the bisection after that.
const HALVES: i32 = 40;
const STEPS: usize = 5;

/// The constraints of which any that gives alone is enough.
fn tightest(request: &Request<'_>) -> Refusal {
    let asked = &request.constraints;
    let with = |constraints: Constraints| Request { constraints, ..request.clone() }.attempt(Strategy::Best).is_some();
    let mut mends: Vec<(f64, Refusal)> = Vec::new();
    if let Replicas::Exactly(count) = asked.replicas
        && let Some(would) =
            fewer(count, |fewer| with(Constraints { replicas: Replicas::Exactly(fewer), ..asked.clone() }))
    {
        mends.push((1.0 - would as f64 / count as f64, Refusal::Replicas { asked: count, would }));
    }
    if let Some(would) = fewer(asked.rings, |rings| with(Constraints { rings, ..asked.clone() })) {
        mends.push((1.0 - would as f64 / asked.rings as f64, Refusal::Rings { asked: asked.rings, would }));
    }
    if let Some(would) = most(asked.stake, |stake| with(Constraints { stake, ..asked.clone() })) {
        mends.push((1.0 - would / asked.stake, Refusal::Stake { asked: asked.stake, would }));
    }
    if let Some(would) = most(asked.bandwidth, |bandwidth| with(Constraints { bandwidth, ..asked.clone() })) {
        mends.push((1.0 - would / asked.bandwidth, Refusal::Bandwidth { asked: asked.bandwidth, would }));
    }
    if let Some(stages) = asked.stages {
        let any = Constraints { stages: None, ..asked.clone() };
        let plan = Request { constraints: any, ..request.clone() }.attempt(Strategy::Best);
        if let Some(would) = plan.and_then(|plan| plan.chains.first().map(|chain| chain.0.len())) {
            let change = would.abs_diff(stages) as f64 / stages.max(would) as f64;
            mends.push((change, Refusal::Stages { asked: stages, would }));
        }
    }
    let lower = [Tier::B, Tier::C].into_iter().filter(|tier| *tier < asked.tier);
    if let Some(would) = lower.into_iter().find(|tier| with(Constraints { tier: *tier, ..asked.clone() })) {
        mends.push((0.75, Refusal::Tier { asked: asked.tier, would }));
    }
    if !asked.running.is_empty() && with(Constraints { running: Default::default(), ..asked.clone() }) {
        let bytes = asked.running.values().map(|load| load.bytes).sum();
        mends.push((0.9, Refusal::Running { bytes }));
    }
    mends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut mends: Vec<Refusal> = mends.into_iter().map(|(_, refusal)| refusal).collect();
    match mends.len() {
        0 => memory(request, with),
        1 => mends.remove(0),
        _ => Refusal::Either(mends),
    }
}

fn listed(refusals: &[Refusal]) -> String {
    refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("; or ")
}

/// The most below a number with which there is a plan.
fn fewer(asked: usize, with: impl Fn(usize) -> bool) -> Option<usize> {
    if asked <= 1 || !with(1) {
        return None;
    }
    let (mut low, mut high) = (1, asked);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if with(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// About the most below what is asked for with which there is a plan.
fn most(asked: f64, with: impl Fn(f64) -> bool) -> Option<f64> {
    if asked <= 0.0 || !with(0.0) {
        return None;
    }
    // By halves, since thresholds may be wrong by orders of magnitude; then between the last two.
    let below = (1..=HALVES).map(|halved| asked * 0.5_f64.powi(halved)).find(|threshold| with(*threshold));
    let Some(mut low) = below else { return Some(0.0) };
    let mut high = 2.0 * low;
    for _ in 0..STEPS {
        let middle = low.midpoint(high);
        if with(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// No single constraint would do: memory, or several together.
fn memory(request: &Request<'_>, with: impl Fn(Constraints) -> bool) -> Refusal {
    let Request { fleet, model, kind, constraints, .. } = request;
    let Constraints { rings, replicas, .. } = *constraints;
    if with(Constraints { rings, replicas, ..Constraints::default() }) {
        return Refusal::Several;
    }
    let admitted = fleet.nodes.iter().enumerate().filter(|(_, node)| constraints.admits(node));
    let free = admitted.map(|(at, node)| (node.free_bytes - constraints.load(at).bytes).max(0.0));
    let (free, largest) = free.fold((0.0, 0.0_f64), |(sum, largest), bytes| (sum + bytes, largest.max(bytes)));
    let layers = model.layers.iter().map(|layer| layer.weights + layer.cost(*kind).state).enumerate();
    if let Some((layer, bytes)) = layers.filter(|(_, bytes)| *bytes > largest).max_by(|a, b| a.1.total_cmp(&b.1)) {
        return Refusal::Layer { layer, bytes, largest };
    }
    let copies = if let Replicas::Exactly(count) = replicas { count } else { 1 } * rings;
    let bytes = model.bytes(*kind) * copies as f64;
    if bytes > free { Refusal::Memory { bytes, free } } else { Refusal::Pieces { bytes, free } }
}
