//! The step graph in 64-bit floats: what calibration observes, and what the gradient is tested against. Informational;
//! nothing here is ever committed or paid for.

mod attention;
mod rows;

use std::collections::BTreeMap;

use tensorlink_num::bounds::DROPOUT_DRAWS;
use tensorlink_num::{StepContext, philox};

use super::{Node, NodeId, Op, StepGraph};
use crate::{lower, tables};

/// A data set as floats.
#[derive(Clone, PartialEq, Debug)]
pub struct FloatData {
    /// Row-major `[rows, features]`.
    pub features: Vec<f64>,
    /// Class of each row.
    pub labels: Vec<f64>,
}

/// State by name.
pub type FloatState = BTreeMap<String, Vec<f64>>;

/// Values of every node of one step.
pub struct Values<'a> {
    data: &'a FloatData,
    state: &'a FloatState,
    graph: &'a StepGraph,
    computed: Vec<Vec<f64>>,
}

impl<'a> Values<'a> {
    /// Computes every node for the rows drawn by `context`.
    pub fn compute(graph: &'a StepGraph, data: &'a FloatData, state: &'a FloatState, context: &StepContext) -> Self {
        let mut values = Self { data, state, graph, computed: Vec::with_capacity(graph.len()) };
        for (_, node) in graph.nodes() {
            let value = values.node(node, context);
            values.computed.push(value);
        }
        values
    }

    /// Value of a node, row-major.
    pub fn get(&self, id: NodeId) -> &[f64] {
        let node = self.graph.node(id);
        match node.op {
            Op::Features => &self.data.features,
            Op::Labels => &self.data.labels,
            Op::State => self.state.get(&node.site).map_or(&[], Vec::as_slice),
            Op::Constant(index) => self.graph.constants.get(index).map_or(&[], |constant| &constant.values),
            _ => self.computed.get(id.index()).map_or(&[], Vec::as_slice),
        }
    }

    /// State after the step.
    pub fn next_state(&self) -> FloatState {
        self.graph.state.iter().map(|s| (self.graph.node(s.current).site.clone(), self.get(s.next).to_vec())).collect()
    }

    /// Mean cross entropy of the step's rows.
    pub fn loss(&self) -> f64 {
        let mut total = (0.0, 0.0);
        for observed in &self.graph.observed {
            let classes = row_length(self.graph.node(observed.probabilities));
            let rows = self.get(observed.probabilities).chunks_exact(classes);
            for (row, label) in rows.zip(self.get(observed.labels)) {
                let p = row.get(*label as usize).copied().unwrap_or_default();
                total = (total.0 - p.max(f64::MIN_POSITIVE).ln(), total.1 + 1.0);
            }
        }
        total.0 / f64::max(total.1, 1.0)
    }

    /// How many elements of row m of a node's first operand are seen (rule N-8).
    fn seen(&self, node: &Node, causal: bool, m: usize) -> usize {
        let dims = node.inputs.first().map(|id| self.graph.node(*id).dims.as_slice()).unwrap_or_default();
        let tokens = dims.iter().rev().nth(1).map_or(1, |tokens| *tokens as usize);
        if causal { m.checked_rem(tokens).unwrap_or_default().saturating_add(1) } else { usize::MAX }
    }

    fn node(&self, node: &Node, context: &StepContext) -> Vec<f64> {
        let operand = |i: usize| node.inputs.get(i).map_or(&[][..], |id| self.get(*id));
        let row_of = |i: usize| node.inputs.get(i).map_or(1, |id| row_length(self.graph.node(*id)));
        let (a, b) = (operand(0), operand(1));
        // Elements that one of the result stands for, where rows or equal parts of them are reduced.
        let part = a.len().checked_div(node.elements()).unwrap_or_default().max(1);
        match node.op {
            Op::Features | Op::Labels | Op::State | Op::Constant(_) => Vec::new(),
            Op::Sample { first_row } => {
                let rows = node.inputs.first().and_then(|id| self.graph.node(*id).dims.first()).map_or(0, |r| *r);
                let width = a.len().checked_div(rows as usize).unwrap_or_default();
                let batch = node.dims.first().copied().unwrap_or_default();
                let draw = |i: u32| {
                    let row = first_row.saturating_add(i);
                    philox::draw_below(&context.job_key, row, context.step, rows.into()) as usize
                };
                (0..batch).flat_map(|i| a.iter().skip(draw(i).saturating_mul(width)).take(width).copied()).collect()
            }
            Op::MatMul => {
                let depth = row_of(0);
                a.chunks_exact(depth).flat_map(|row| b.chunks_exact(depth).map(|column| dot(row, column))).collect()
            }
            Op::Transpose => {
                let (columns, rows) = (row_of(0), row_length(node));
                let matrix = |a: &[f64]| -> Vec<f64> {
                    (0..columns).flat_map(|n| a.iter().skip(n).step_by(columns).copied()).collect()
                };
                a.chunks_exact(rows.saturating_mul(columns)).flat_map(matrix).collect()
            }
            Op::Combine { fa, fb } => a.iter().zip(b.iter().cycle()).map(|(a, b)| fa * a + fb * b).collect(),
            Op::Dropout { keep, stream } => {
                a.iter().zip(factors(keep, stream, context)).map(|(a, factor)| a * factor).collect()
            }
            Op::Cast | Op::Ceiling => a.to_vec(),
            Op::Mul => a.iter().zip(b.iter().cycle()).map(|(a, b)| a * b).collect(),
            Op::Relu => a.iter().map(|a| a.max(0.0)).collect(),
            Op::ReluGrad => a.iter().zip(b).map(|(dy, x)| if *x > 0.0 { *dy } else { 0.0 }).collect(),
            Op::Lookup(function) => a.iter().map(|x| tables::value(function, *x)).collect(),
            Op::RowMax { causal } => {
                let max = |row: &[f64]| row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let seen = (0..).map(|m| self.seen(node, causal, m));
                a.chunks_exact(part).zip(seen).map(|(row, seen)| max(row.get(..seen).unwrap_or(row))).collect()
            }
            Op::ExpNeg { divisor, causal } => {
                let mut powers = per_row(a, b, row_of(0), |a, max| ((a - max) / divisor).exp());
                for (m, row) in (0..).zip(powers.chunks_exact_mut(row_of(0))) {
                    row.iter_mut().skip(self.seen(node, causal, m)).for_each(|hidden| *hidden = 0.0);
                }
                powers
            }
            Op::RowSum => a.chunks_exact(part).map(|row| row.iter().sum()).collect(),
            // Where a divisor is nothing, so is what it divides.
            Op::Normalize | Op::Dither { .. } => per_row(a, b, row_of(0), |p, z| if z == 0.0 { 0.0 } else { p / z }),
            Op::ScaledMatMul { offset } => {
                let (depth, c, d) = (row_of(1), operand(2), operand(3));
                let row = |(row, r): (&[f64], &f64)| -> Vec<f64> {
                    b.chunks_exact(depth).zip(d).map(|(column, c)| r * c * dot(row, column)).collect()
                };
                slices(a, row_of(0), offset, depth).zip(c).flat_map(row).collect()
            }
            Op::Slice { offset } => slices(a, row_of(0), offset, row_length(node)).flatten().copied().collect(),
            Op::RowCombine { fa, fb } => runs(a, b).map(|(a, b)| fa * a + fb * b).collect(),
            Op::RowMul => runs(a, b).map(|(a, b)| a * b).collect(),
            Op::RowAbsMax => {
                a.chunks_exact(part).map(|row| row.iter().fold(0.0, |max: f64, x| max.max(x.abs()))).collect()
            }
            Op::HeadScores { heads } => attention::scores((a, row_of(0)), (b, row_of(1)), heads as usize),
            Op::HeadMix { heads } => attention::mix(a, (b, row_of(1)), heads as usize, row_length(node)),
            Op::GroupSum { heads } => attention::group_sum((a, row_of(0)), heads as usize, row_length(node)),
            Op::Norm(spread) => rows::norm(a, row_of(1), &spread),
            Op::InverseNorm(spread) => rows::inverse_norm(a, part, &spread),
            Op::Rope { heads } => rows::rope((a, row_of(0)), (b, row_of(1)), heads as usize),
            Op::Gather => {
                let (ids, width) = (operand(2), row_length(node));
                ids.iter()
                    .flat_map(|id| a.iter().skip((*id as usize).saturating_mul(width)).take(width).copied())
                    .collect()
            }
            Op::GatherGrad => rows::gather_grad((a, row_of(0)), b, node.elements()),
            Op::Ratio { epsilon } => {
                a.iter().zip(b).map(|(m, v)| if *v > 0.0 { m / (v.sqrt() + epsilon) } else { 0.0 }).collect()
            }
            Op::Shrink { limit } => {
                a.iter().map(|s| if *s > 0.0 { (limit / s.sqrt()).min(1.0) } else { 1.0 }).collect()
            }
            Op::AtStep => {
                let width = row_length(node);
                let rows = a.len().checked_div(width).unwrap_or_default();
                let row = (context.step as usize).min(rows.saturating_sub(1));
                a.chunks_exact(width).nth(row).unwrap_or_default().to_vec()
            }
            Op::OneHotSub => {
                let rows = a.chunks_exact(row_of(0)).zip(b);
                let one = |k: usize, label: f64| if k == label as usize { 1.0 } else { 0.0 };
                rows.flat_map(|(row, label)| row.iter().enumerate().map(move |(k, p)| p - one(k, *label))).collect()
            }
        }
    }
}

/// What a dropout multiplies elements by, one after the other.
pub fn factors(keep: u64, stream: u32, context: &StepContext) -> impl Iterator<Item = f64> {
    let kept =
        move |i| u64::from(philox::draw_element(&context.job_key, i, context.step, stream, DROPOUT_DRAWS)) < keep;
    let factor = 1.0 / lower::share(keep);
    (0..).map(move |i| if kept(i) { factor } else { 0.0 })
}

/// So many elements of each row from an offset on.
fn slices(a: &[f64], row: usize, offset: u32, length: usize) -> impl Iterator<Item = &[f64]> {
    let start = offset as usize;
    a.chunks_exact(row).map(move |row| row.get(start..start.saturating_add(length)).unwrap_or_default())
}

/// Each element of a with the one of b that stands for its run.
fn runs<'a>(a: &'a [f64], b: &'a [f64]) -> impl Iterator<Item = (f64, f64)> + 'a {
    let run = a.len().checked_div(b.len()).unwrap_or_default().max(1);
    a.chunks_exact(run).zip(b).flat_map(|(run, b)| run.iter().map(|a| (*a, *b)))
}

fn row_length(node: &Node) -> usize {
    node.dims.last().map_or(1, |d| *d as usize).max(1)
}

fn per_row(a: &[f64], b: &[f64], row: usize, f: impl Fn(f64, f64) -> f64 + Copy) -> Vec<f64> {
    a.chunks_exact(row).zip(b).flat_map(|(row, b)| row.iter().map(move |a| f(*a, *b))).collect()
}

/// Eight partial sums in a fixed order: the same result everywhere, and vectorisable.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (heads_a, heads_b) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = heads_a.remainder().iter().zip(heads_b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in heads_a.zip(heads_b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + tail
}
