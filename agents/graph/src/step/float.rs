//! The step graph in 64-bit floats: what calibration observes, and what the gradient is tested against. Informational;
//! nothing here is ever committed or paid for.

use std::collections::BTreeMap;

use tensorlink_num::{StepContext, philox};

use super::{Function, Node, NodeId, Op, Slot, StepGraph};
use crate::tables;

/// A data set as floats.
#[derive(Clone, PartialEq, Debug)]
pub struct FloatData {
    /// Row-major `[rows, features]`.
    pub features: Vec<f64>,
    /// Class of each row.
    pub labels: Vec<f64>,
}

/// State by layer and slot.
pub type FloatState = BTreeMap<(usize, Slot), Vec<f64>>;

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
            Op::State(slot) => self.state.get(&(node.layer, slot)).map_or(&[], Vec::as_slice),
            _ => self.computed.get(id.index()).map_or(&[], Vec::as_slice),
        }
    }

    /// State after the step.
    pub fn next_state(&self) -> FloatState {
        self.graph.state.iter().map(|s| ((s.layer, s.slot), self.get(s.next).to_vec())).collect()
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

    fn node(&self, node: &Node, context: &StepContext) -> Vec<f64> {
        let operand = |i: usize| node.inputs.get(i).map_or(&[][..], |id| self.get(*id));
        let row_of = |i: usize| node.inputs.get(i).map_or(1, |id| row_length(self.graph.node(*id)));
        let (a, b) = (operand(0), operand(1));
        match node.op {
            Op::Features | Op::Labels | Op::State(_) => Vec::new(),
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
                let columns = row_of(0);
                (0..columns).flat_map(|n| a.iter().skip(n).step_by(columns).copied()).collect()
            }
            Op::Combine { fa, fb } => a.iter().zip(b.iter().cycle()).map(|(a, b)| fa * a + fb * b).collect(),
            Op::Cast => a.to_vec(),
            Op::Mul => a.iter().zip(b.iter().cycle()).map(|(a, b)| a * b).collect(),
            Op::Relu => a.iter().map(|a| a.max(0.0)).collect(),
            Op::ReluGrad => a.iter().zip(b).map(|(dy, x)| if *x > 0.0 { *dy } else { 0.0 }).collect(),
            Op::Lookup(Function::Gelu) => a.iter().map(|x| tables::gelu(*x)).collect(),
            Op::Lookup(Function::GeluDerivative) => a.iter().map(|x| tables::gelu_derivative(*x)).collect(),
            Op::RowMax => {
                a.chunks_exact(row_of(0)).map(|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max)).collect()
            }
            Op::ExpNeg => per_row(a, b, row_of(0), |a, max| (a - max).exp()),
            Op::RowSum => a.chunks_exact(row_of(0)).map(|row| row.iter().sum()).collect(),
            Op::Normalize => per_row(a, b, row_of(0), |p, z| p / z),
            Op::OneHotSub => {
                let rows = a.chunks_exact(row_of(0)).zip(b);
                let one = |k: usize, label: f64| if k == label as usize { 1.0 } else { 0.0 };
                rows.flat_map(|(row, label)| row.iter().enumerate().map(move |(k, p)| p - one(k, *label))).collect()
            }
        }
    }
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
