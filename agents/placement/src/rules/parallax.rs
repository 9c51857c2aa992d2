//! Parallax (Gradient: *Efficient LLM Inference Service over Decentralized Environment*, 2025): in each region, a
//! dynamic program assembles pipelines of the fewest stages; water-filling gives each node layers by its speed; then a
//! client's path is searched over what all nodes hold.

use std::collections::HashMap;

use crate::cuts::{bottleneck, sum};
use crate::problem::{Goal, Problem};
use crate::rules::route::{Span, path};
use crate::rules::{Assigned, proportional, repaired};

/// How much more pipelines count than their latency.
const PREFER_PIPELINES: f64 = 2.0;
/// Nodes less than this far apart, one way in seconds, are a region.
const REGION: f64 = 0.03;
/// Up to so many nodes, the assignment is exact.
const EXACT: usize = 10;
/// So many numbers of pipelines are tried.
const TRIED: usize = 24;

/// All pipelines that it forms.
pub(crate) fn pipelines(problem: &Problem) -> Vec<Assigned> {
    let regions = regions(problem);
    let unit = problem.bytes(0, problem.layers) / problem.layers as f64;
    let capacity = |node: usize| ((problem.memory(node).max(0.0) / unit) as usize).min(problem.layers);
    let holds = |region: &&Vec<usize>| region.iter().map(|node| capacity(*node)).sum::<usize>() > problem.layers;
    let of = |nodes: &[usize]| {
        let mut sorted: Vec<usize> = nodes.iter().copied().filter(|node| capacity(*node) > 0).collect();
        sorted.sort_by_key(|node| std::cmp::Reverse(capacity(*node)));
        let capacities: Vec<usize> = sorted.iter().map(|node| capacity(*node)).collect();
        let chosen = allocate(problem, &sorted, &capacities).unwrap_or_default();
        let filled = chosen.iter().filter_map(|pipeline| {
            let nodes: Vec<usize> = pipeline.iter().filter_map(|at| sorted.get(*at)).copied().collect();
            water_fill(problem, &nodes, &capacity)
        });
        filled.collect::<Vec<_>>()
    };
    let regional: Vec<Assigned> = regions.iter().filter(holds).flat_map(|region| of(region)).collect();
    if !regional.is_empty() {
        return regional;
    }
    let everybody: Vec<usize> = (0..problem.nodes()).collect();
    let global = of(&everybody);
    if global.is_empty() { water_fill(problem, &everybody, &capacity).into_iter().collect() } else { global }
}

/// The best of its pipelines and of the paths over what they hold.
pub(crate) fn chain(problem: &Problem, goal: &Goal) -> Option<Assigned> {
    let mut candidates = pipelines(problem);
    let spans: Vec<Span> = candidates.iter().flat_map(spans).collect();
    candidates.extend(path(problem, goal, &spans));
    let cost = |at: &Assigned| {
        let slowest =
            goal.per_bottleneck(crate::cuts::price(problem, &at.order)) * bottleneck(problem, &at.order, &at.ends);
        let open = if slowest.is_nan() { f64::INFINITY } else { slowest };
        if goal.adds() { sum(problem, goal, &at.order, &at.ends) + open } else { open }
    };
    candidates.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

fn spans(pipeline: &Assigned) -> Vec<Span> {
    let firsts = std::iter::once(0).chain(pipeline.ends.iter().copied());
    let stages = pipeline.order.iter().zip(firsts).zip(&pipeline.ends);
    stages.map(|((node, first), end)| Span { node: *node, first, end: *end }).collect()
}

/// Nodes around one that is in no region yet, again and again.
fn regions(problem: &Problem) -> Vec<Vec<usize>> {
    let mut left: Vec<usize> = (0..problem.nodes()).collect();
    let mut regions = Vec::new();
    while let Some(centre) = left.first().copied() {
        let (near, far) = left.into_iter().partition(|node| *node == centre || problem.wait(centre, *node, 0) < REGION);
        regions.push(near);
        left = far;
    }
    regions
}

/// The pipelines, by positions among the sorted nodes, of the number that is best for throughput and latency together.
fn allocate(problem: &Problem, nodes: &[usize], capacities: &[usize]) -> Option<Vec<Vec<usize>>> {
    let most = (capacities.iter().sum::<usize>() / problem.layers).min(nodes.len());
    let mut waits: Vec<f64> = nodes.iter().flat_map(|a| nodes.iter().map(|b| problem.wait(*a, *b, 0))).collect();
    let middle = waits.len() / 2;
    let wait = if waits.is_empty() { 0.0 } else { *waits.select_nth_unstable_by(middle, f64::total_cmp).1 };
    let step = most.div_ceil(TRIED).max(1);
    let mut best: Option<(f64, Vec<Vec<usize>>)> = None;
    for count in (1..=most).step_by(step) {
        let Some(pipelines) = assemble(capacities, problem.layers, count) else { break };
        let stages: usize = pipelines.iter().map(Vec::len).sum();
        let alone = |pipeline: &Vec<usize>| {
            let rate: f64 =
                pipeline.iter().filter_map(|at| nodes.get(*at)).map(|node| 1.0 / problem.alone(*node)).sum();
            pipeline.len() as f64 / rate
        };
        let computing = pipelines.iter().map(alone).sum::<f64>() / count as f64;
        let latency = computing + wait * stages as f64 / count as f64;
        let worth = (count as f64).powf(PREFER_PIPELINES) / latency;
        if best.as_ref().is_none_or(|(most, _)| worth > *most) {
            best = Some((worth, pipelines));
        }
    }
    best.map(|(_, pipelines)| pipelines)
}

/// So many full copies of the layers, in the fewest stages, from capacities that fall.
fn assemble(capacities: &[usize], layers: usize, count: usize) -> Option<Vec<Vec<usize>>> {
    if capacities.len() <= EXACT {
        let mut known = HashMap::new();
        fewest(capacities, 0, &vec![layers; count], &mut known)?;
        return Some(follow(capacities, vec![layers; count], &known));
    }
    let mut left: Vec<(usize, usize)> = capacities.iter().copied().enumerate().collect();
    let mut pipelines = Vec::with_capacity(count);
    for _ in 0..count {
        let (mut missing, mut pipeline) = (layers, Vec::new());
        while missing > 0 {
            // The smallest that finishes the copy, or the largest.
            let at = left.iter().rposition(|(_, capacity)| *capacity >= missing).unwrap_or(0);
            let (node, capacity) = (at < left.len()).then(|| left.remove(at))?;
            missing = missing.saturating_sub(capacity);
            pipeline.push(node);
        }
        pipelines.push(pipeline);
    }
    Some(pipelines)
}

/// By the next node and what copies still miss, sorted: the fewest stages and which copy the node serves, if any.
type Known = HashMap<(usize, Vec<usize>), Option<(usize, Option<usize>)>>;

fn fewest(capacities: &[usize], at: usize, missing: &[usize], known: &mut Known) -> Option<usize> {
    if missing.iter().all(|layers| *layers == 0) {
        return Some(0);
    }
    let capacity = *capacities.get(at)?;
    let key = (at, missing.to_vec());
    if let Some(answer) = known.get(&key) {
        return answer.map(|(stages, _)| stages);
    }
    let mut best = fewest(capacities, at + 1, missing, known).map(|stages| (stages, None));
    for (copy, layers) in missing.iter().enumerate() {
        if *layers == 0 || missing.iter().take(copy).any(|other| other == layers) {
            continue;
        }
        let rest = served(missing, copy, capacity);
        if let Some(stages) = fewest(capacities, at + 1, &rest, known)
            && best.is_none_or(|(fewest, _)| stages + 1 < fewest)
        {
            best = Some((stages + 1, Some(*layers)));
        }
    }
    known.insert(key, best);
    best.map(|(stages, _)| stages)
}

/// What copies miss after one of them got a node, sorted.
fn served(missing: &[usize], copy: usize, capacity: usize) -> Vec<usize> {
    let mut rest = missing.to_vec();
    if let Some(layers) = rest.get_mut(copy) {
        *layers = layers.saturating_sub(capacity);
    }
    rest.sort_unstable_by(|a, b| b.cmp(a));
    rest
}

fn follow(capacities: &[usize], mut missing: Vec<usize>, known: &Known) -> Vec<Vec<usize>> {
    let mut pipelines: Vec<(usize, Vec<usize>)> = missing.iter().map(|layers| (*layers, vec![])).collect();
    for (at, capacity) in capacities.iter().enumerate() {
        let choice = known.get(&(at, missing.clone())).copied().flatten();
        let Some((_, Some(layers))) = choice else { continue };
        let Some(copy) = missing.iter().position(|left| *left == layers) else { break };
        missing = served(&missing, copy, *capacity);
        if let Some((left, nodes)) = pipelines.iter_mut().find(|(left, _)| *left == layers) {
            *left = left.saturating_sub(*capacity);
            nodes.push(at);
        }
    }
    pipelines.into_iter().map(|(_, nodes)| nodes).collect()
}

/// Layers by speed, up to what each node holds.
fn water_fill(problem: &Problem, nodes: &[usize], capacity: &dyn Fn(usize) -> usize) -> Option<Assigned> {
    let layers = problem.layers as f64;
    let speed = |node: usize| 1.0 / problem.alone(node);
    let level = |level: f64| nodes.iter().map(move |node| (capacity(*node) as f64).min(level * speed(*node)));
    if level(f64::MAX).sum::<f64>() < layers {
        return None;
    }
    let (mut low, mut high) = (0.0, nodes.iter().map(|node| layers / speed(*node)).fold(0.0, f64::max));
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if level(middle).sum::<f64>() < layers { low = middle } else { high = middle }
    }
    let shares: Vec<f64> = level(high).collect();
    repaired(problem, nodes, proportional(&shares, problem.layers))
}
