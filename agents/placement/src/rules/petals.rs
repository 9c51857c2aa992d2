//! Petals (Borzunov et al.: *Distributed Inference and Fine-tuning of Large Language Models Over The Internet*, 2023):
//! servers join one by one, and each takes the run of blocks that the swarm serves worst; now and then one moves, if
//! the swarm's slowest block gains enough.

use tensorlink_draws::Draws;

use crate::problem::{Goal, Problem};
use crate::rules::Assigned;
use crate::rules::route::{Span, path};

/// A server moves if the slowest block's throughput times this exceeds what it is now.
const BALANCE: f64 = 0.75;

/// Servers with their blocks.
pub(crate) struct Swarm {
    pub(crate) spans: Vec<Span>,
}

impl Swarm {
    /// The swarm after so many rounds in which everybody may move. The order of joining is drawn.
    pub(crate) fn settle(problem: &Problem, seed: u64, rounds: usize) -> Self {
        let mut draws = Draws::of(seed, 11);
        let mut joining: Vec<usize> = (0..problem.nodes()).collect();
        draws.shuffle(&mut joining);
        let mut served = vec![0.0; problem.layers];
        let mut spans: Vec<Span> = Vec::new();
        for node in joining {
            if let Some(span) = choose(problem, &served, node) {
                add(&mut served, span, rate(problem, span));
                spans.push(span);
            }
        }
        for _ in 0..rounds {
            let mut moved = false;
            draws.shuffle(&mut spans);
            for span in &mut spans {
                let now = slowest(&served);
                let rate_here = rate(problem, *span);
                let mut without = served.clone();
                add(&mut without, *span, -rate_here);
                let Some(other) = choose(problem, &without, span.node) else { continue };
                let mut after = without;
                add(&mut after, other, rate(problem, other));
                if slowest(&after) * BALANCE > now {
                    (served, *span, moved) = (after, other, true);
                }
            }
            if !moved {
                break;
            }
        }
        Self { spans }
    }

    /// A client's path.
    pub(crate) fn path(&self, problem: &Problem, goal: &Goal) -> Option<Assigned> {
        path(problem, goal, &self.spans)
    }

    /// Units a second that the worst served block gets from all servers together: no clients together get more.
    pub(crate) fn throughput(&self, problem: &Problem) -> f64 {
        let mut served = vec![0.0; problem.layers];
        for span in &self.spans {
            let seconds = problem.seconds(span.node, span.first, span.end);
            add(&mut served, *span, 1.0 / seconds.max(sending(problem, span.node)));
        }
        slowest(&served)
    }
}

/// What a server says that it serves: units a second by its speed for its blocks, and by its line.
fn rate(problem: &Problem, span: Span) -> f64 {
    1.0 / problem.seconds(span.node, span.first, span.end).max(sending(problem, span.node))
}

/// Seconds of a transfer over the eighth of a node's links that are fastest, at the least.
fn sending(problem: &Problem, node: usize) -> f64 {
    let boundary = problem.most_handed();
    let others = (0..problem.nodes()).filter(|other| *other != node);
    let mut flows: Vec<f64> = others.map(|other| problem.flow(node, other, boundary)).collect();
    let at = (problem.nodes() / 8).max(1).min(flows.len().saturating_sub(1));
    if flows.is_empty() { 0.0 } else { *flows.select_nth_unstable_by(at, f64::total_cmp).1 }
}

fn add(served: &mut [f64], span: Span, rate: f64) {
    for block in served.get_mut(span.first..span.end).unwrap_or_default() {
        *block += rate;
    }
}

fn slowest(served: &[f64]) -> f64 {
    served.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The run of as many blocks as a node holds on average whose throughputs, from the least, are the least.
fn choose(problem: &Problem, served: &[f64], node: usize) -> Option<Span> {
    let mean = problem.bytes(0, problem.layers) / problem.layers as f64;
    let most = ((problem.memory(node).max(0.0) / mean) as usize).min(problem.layers);
    (1..=most).rev().find_map(|blocks| {
        let fits = |first: &usize| problem.furthest(node, *first) >= first + blocks;
        let starts = (0..=problem.layers - blocks).filter(fits);
        let sorted = starts.map(|first| {
            let mut run = served.get(first..first + blocks).unwrap_or_default().to_vec();
            run.sort_unstable_by(f64::total_cmp);
            (run, first)
        });
        let least = sorted.min_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        least.map(|(_, first)| Span { node, first, end: first + blocks })
    })
}
