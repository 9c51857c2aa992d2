//! A plan as a picture in text: who, which layers, seconds a hop, what bounds it, and what else was near.

use std::fmt::Write as _;

use crate::best::{Effort, chains};
use crate::model::ModelProfile;
use crate::node::{Profile, Tier};
use crate::objective::Figures;
use crate::place::Request;
use crate::plan::{Broken, Chain, Plan, Stage, hop, seconds, way_back};
use crate::problem::Goal;

/// The widest bar.
const BAR: f64 = 24.0;

/// All chains of a plan, and for a single one the runner-up. `name` tells people which node has a number.
///
/// # Errors
/// [`Broken`] for a plan that is none of the request's model and fleet.
pub fn explain(request: &Request<'_>, plan: &Plan, name: &dyn Fn(usize) -> String) -> Result<String, Broken> {
    let mut text = String::new();
    for (at, chain) in plan.chains.iter().enumerate() {
        let figures = request.figures(chain)?;
        let (replica, ring) = (at / plan.rings.max(1), at % plan.rings.max(1));
        line(&mut text, format_args!("replica {replica}, ring {ring}: {}", summary(request, &figures)));
        picture(&mut text, request, (chain, &figures), name);
    }
    if let [chain] = plan.chains.as_slice() {
        let cost = request.objective.cost(&request.figures(chain)?);
        match runner_up(request, chain) {
            Some((without, other, figures)) => {
                let ratio = request.objective.cost(&figures) / cost;
                line(&mut text, format_args!("runner-up, without {}: {ratio:.3} times the cost", name(without)));
                line(&mut text, format_args!("  {}", list(&other, name)));
            }
            None => line(&mut text, format_args!("runner-up: none, every worker is needed")),
        }
    }
    Ok(text)
}

/// A stage of a chain as it is expected to go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Expected {
    /// Who has which layers.
    pub stage: Stage,
    /// The class of the node.
    pub tier: Tier,
    /// Seconds that it takes for a unit of the work.
    pub seconds: f64,
    /// What it waits for meanwhile.
    pub waits_for: &'static str,
    /// The way to the next stage; none after the last, or where no link is known.
    pub hop: Option<Hop>,
}

/// The way from one stage to the next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hop {
    /// Seconds until a unit is there.
    pub wait: f64,
    /// Seconds between one unit and the next.
    pub flow: f64,
    /// `distance` or `bandwidth`.
    pub waits_for: &'static str,
}

/// Each stage of a chain as it is expected to go.
pub fn ring(request: &Request<'_>, chain: &Chain) -> Vec<Expected> {
    let Request { fleet, model, kind, constraints, .. } = request;
    let of = |(at, stage): (usize, &Stage)| {
        let link = chain.0.get(at + 1).and_then(|next| hop(fleet, *kind, constraints, stage.node, next.node));
        let last = stage.end.checked_sub(1).and_then(|last| model.layers.get(last));
        let bytes = last.map_or(0.0, |layer| layer.cost(*kind).activations);
        let hop = link.map(|link| {
            let by_bandwidth = bytes * link.wait_per_byte;
            let waits_for = if link.wait > by_bandwidth { "distance" } else { "bandwidth" };
            Hop { wait: link.wait + by_bandwidth, flow: bytes * link.flow_per_byte, waits_for }
        });
        Expected {
            stage: *stage,
            tier: fleet.nodes.get(stage.node).map_or(Tier::C, Profile::tier),
            seconds: seconds(fleet, model, *kind, constraints, *stage),
            waits_for: bound(request, *stage),
            hop,
        }
    };
    chain.0.iter().enumerate().map(of).collect()
}

/// The best chain without one of a chain's nodes, the node, and what that chain costs.
pub fn runner_up(request: &Request<'_>, chain: &Chain) -> Option<(usize, Chain, Figures)> {
    let problem = request.problem();
    let goal = Goal::new(request.objective);
    let without = chain.0.iter().filter_map(|stage| {
        let taken: Vec<bool> = problem.ids.iter().map(|id| *id == stage.node).collect();
        let found = chains(&problem, &goal, &taken, &Effort::of(problem.nodes())).into_iter().next()?;
        Some((stage.node, found))
    });
    let (node, found) = without.min_by(|a, b| a.1.cut.cost.total_cmp(&b.1.cut.cost))?;
    let other = problem.chain(&found.order, &found.cut.ends);
    let figures = request.figures(&other).ok()?;
    Some((node, other, figures))
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{what}");
}

fn summary(request: &Request<'_>, figures: &Figures) -> String {
    let kind = format!("{:?}", request.kind).to_lowercase();
    let (latency, throughput) = (figures.latency, figures.throughput());
    let mut text = format!("{kind} of {}: {latency:.4} s, {throughput:.3} a second", request.model.name);
    // Where nobody says what an hour or a joule is, there is nothing to tell.
    if figures.price > 0.0 {
        text.push_str(&format!(", price {:.3e}", figures.price));
    }
    if figures.energy > 0.0 {
        text.push_str(&format!(", {:.3} J", figures.energy));
    }
    text
}

fn list(chain: &Chain, name: &dyn Fn(usize) -> String) -> String {
    let stages = chain.0.iter().map(|stage| format!("{} [{}..{})", name(stage.node), stage.first, stage.end));
    stages.collect::<Vec<_>>().join(" → ")
}

fn picture(
    text: &mut String,
    request: &Request<'_>,
    (chain, figures): (&Chain, &Figures),
    name: &dyn Fn(usize) -> String,
) {
    for expected in ring(request, chain) {
        let Expected { stage, tier, seconds, waits_for, hop } = expected;
        let bar = "█".repeat(((seconds / figures.bottleneck * BAR).round() as usize).clamp(1, BAR as usize));
        line(
            text,
            format_args!(
                "  ├ {:<12} {tier}  layers {:>3}..{:<3} {seconds:>9.5} s  {bar:<24} {waits_for}{}",
                name(stage.node),
                stage.first,
                stage.end,
                slowest(seconds, figures)
            ),
        );
        if let Some(Hop { wait, flow, waits_for }) = hop {
            line(text, format_args!("  │   hop {wait:>29.5} s  {waits_for}{}", slowest(flow, figures)));
        }
    }
    if let (Some(first), Some(last)) = (chain.0.first(), chain.0.last()) {
        line(text, format_args!("  ╰ back {:>30.5} s", way_back(request.fleet, request.kind, last.node, first.node)));
    }
}

/// Marks what bounds the throughput.
fn slowest(time: f64, figures: &Figures) -> &'static str {
    if time >= figures.bottleneck * (1.0 - 1e-9) { ", the bottleneck" } else { "" }
}

/// What a stage waits for: its multiply-adds or its memory; and whether it could hold more.
fn bound(request: &Request<'_>, stage: Stage) -> &'static str {
    let Request { fleet, model, kind, constraints, .. } = request;
    let Some(node) = fleet.nodes.get(stage.node) else { return "nothing: there is no such node" };
    let layers = model.layers.get(stage.first..stage.end).unwrap_or_default();
    let compute: f64 = layers.iter().map(|layer| layer.cost(*kind).macs).sum::<f64>() / node.rate(model.precision);
    let read: f64 = layers.iter().map(|layer| layer.cost(*kind).reads).sum::<f64>() / node.memory_rate;
    let held: f64 = layers.iter().map(|layer| layer.weights + layer.cost(*kind).state).sum();
    let full = held + smallest(model, request) > node.free_bytes - constraints.load(stage.node).bytes;
    match (compute > read, full) {
        (true, true) => "computes, memory full",
        (true, false) => "computes",
        (false, true) => "reads weights, memory full",
        (false, false) => "reads weights",
    }
}

fn smallest(model: &ModelProfile, request: &Request<'_>) -> f64 {
    let bytes = model.layers.iter().map(|layer| layer.weights + layer.cost(request.kind).state);
    bytes.fold(f64::INFINITY, f64::min)
}
