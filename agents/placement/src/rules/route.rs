//! A client's path over servers that hold spans of layers, as Petals and Parallax choose it: the shortest by latency,
//! or the one with the fastest slowest server. The client here knows every link and every speed, and so is optimistic.

use crate::columns;
use crate::problem::{Goal, Problem};
use crate::rules::Assigned;
use crate::table::Grid;

/// Layers `first..end` on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) node: usize,
    pub(crate) first: usize,
    pub(crate) end: usize,
}

/// So many servers of the first layer are tried one by one, because the way back leads to them.
const FIRSTS: usize = 12;

/// The best path by sums if the goal has some, and else by the bottleneck.
pub(crate) fn path(problem: &Problem, goal: &Goal, spans: &[Span]) -> Option<Assigned> {
    let firsts: Vec<usize> = (0..).zip(spans).filter(|(_, span)| span.first == 0).map(|(at, _)| at).collect();
    if !goal.adds() {
        return Paths::search::<false>(problem, goal, spans, &firsts).map(|(_, path)| path);
    }
    let groups: Vec<&[usize]> = if firsts.len() > FIRSTS { vec![&firsts] } else { firsts.chunks(1).collect() };
    let found = groups.into_iter().filter_map(|group| Paths::search::<true>(problem, goal, spans, group));
    found.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, path)| path)
}

/// A path that ends at a boundary with a server: its cost and where it comes from.
#[derive(Clone, Copy)]
struct Step {
    cost: f64,
    /// The boundary and server before; none at the start.
    from: Option<(usize, usize)>,
}

/// By boundary and server.
struct Paths(Grid<Step>);

impl Paths {
    fn at(&self, end: usize, server: usize) -> Step {
        self.0.at(end, server)
    }

    /// Whether a path has passed a server.
    fn passed(&self, mut end: usize, mut server: usize, wanted: usize) -> bool {
        loop {
            if server == wanted {
                return true;
            }
            let Some(from) = self.at(end, server).from else { return false };
            (end, server) = from;
        }
    }

    fn search<const ADD: bool>(
        problem: &Problem,
        goal: &Goal,
        spans: &[Span],
        firsts: &[usize],
    ) -> Option<(f64, Assigned)> {
        let none = Step { cost: f64::INFINITY, from: None };
        let cells = (problem.layers + 1) * spans.len();
        let mut paths = Self(Grid::new(spans.len(), std::iter::repeat_n(none, cells), none));
        let mut column = vec![f64::INFINITY; problem.layers + 1];
        for first in 0..problem.layers {
            let ended: Vec<(usize, &Span)> = match first {
                0 => vec![],
                _ => (0..).zip(spans).filter(|(server, _)| paths.at(first, *server).cost < f64::INFINITY).collect(),
            };
            for (server, span) in spans.iter().enumerate() {
                if span.first > first || span.end <= first || (first == 0 && !firsts.contains(&server)) {
                    continue;
                }
                let mut entry = Step { cost: if first == 0 { 0.0 } else { f64::INFINITY }, from: None };
                for (earlier, before) in &ended {
                    let cost = paths.at(first, *earlier).cost;
                    let hop = columns::hop::<ADD>(problem, goal, before.node, span.node, first);
                    let cost = if ADD { cost + hop } else { cost.max(hop) };
                    // A server that is passed twice would do more than its stage.
                    if cost < entry.cost && !paths.passed(first, *earlier, server) {
                        entry = Step { cost, from: Some((first, *earlier)) };
                    }
                }
                if entry.cost == f64::INFINITY {
                    continue;
                }
                column.fill(f64::INFINITY);
                if let Some(cost) = column.get_mut(first) {
                    *cost = entry.cost;
                }
                let mut after = vec![f64::INFINITY; problem.layers + 1];
                columns::extend::<ADD>(problem, goal, &column, None, span.node, f64::INFINITY, &mut after);
                let steps = paths.0.rows_mut().zip(&after).take(span.end + 1).skip(first + 1);
                for (step, cost) in steps.filter_map(|(row, cost)| Some((row.get_mut(server)?, *cost))) {
                    if cost < step.cost {
                        *step = Step { cost, from: entry.from };
                    }
                }
            }
        }
        let only = if let [first] = firsts { spans.get(*first) } else { None };
        let back = |span: &Span| match only {
            Some(first) if ADD => goal.weights.latency * problem.back(span.node, first.node),
            _ => 0.0,
        };
        let totals =
            (0..).zip(spans).map(|(server, span)| (paths.at(problem.layers, server).cost + back(span), server));
        let (total, mut last) = totals.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
        if total == f64::INFINITY {
            return None;
        }
        let mut path = Assigned::default();
        let mut end = problem.layers;
        loop {
            path.order.push(spans.get(last)?.node);
            path.ends.push(end);
            let Some(from) = paths.at(end, last).from else { break };
            (end, last) = from;
        }
        path.order.reverse();
        path.ends.reverse();
        Some((total, path))
    }
}
