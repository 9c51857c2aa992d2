//! A step graph in libtorch's 32-bit floats: what language models are calibrated by.
//!
//! The plain interpretation of [`tensorlink_graph::step::float`] says what each operator is, and tests hold this one to it. That one keeps
//! every value of a step, on one thread; this one frees what nobody reads any more, and computes on all of them.
//!
//! | module | what lives there |
//! |---|---|
//! | `mod` | [`FloatTrial`]: the run, and which values are kept how long |
//! | `node` | one operator |
//! | `rows`, `heads` | rows reduced, normalised, rotated and gathered; heads of attention |

mod heads;
mod node;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use tch::{Kind, TchError, Tensor, no_grad};
use tensorlink_graph::EngineError;
use tensorlink_graph::calibrate::{self, CalibrateError, Taken, Trial};
use tensorlink_graph::step::float::{FloatData, FloatState};
use tensorlink_graph::step::{Node, NodeId, Observed, Op, StateNode, StepGraph};
use tensorlink_num::StepContext;

use crate::{Device, cuda};

/// A float run of a step graph on a device.
#[derive(Debug)]
pub struct FloatTrial<'a> {
    graph: &'a StepGraph,
    /// What is given to a step: data, constants, and the state before it.
    leaves: BTreeMap<NodeId, Tensor>,
    /// For each node, in their order, the values that nobody reads after it.
    over: Vec<Vec<NodeId>>,
}

impl<'a> FloatTrial<'a> {
    /// A run that begins at a state.
    ///
    /// # Errors
    /// [`CalibrateError::Device`] without the device or enough memory on it, or for a leaf that has no values.
    pub fn new(
        graph: &'a StepGraph,
        data: &FloatData,
        state: &FloatState,
        device: Device,
    ) -> Result<Self, CalibrateError> {
        if let Device::Cuda(index) = device {
            cuda::reach(index).map_err(engine_failure)?;
        }
        let leaves = leaves(graph, data, state, device.into()).map_err(failure)?;
        Ok(Self { graph, leaves, over: over(graph) })
    }

    fn take(&mut self, context: &StepContext) -> Result<Taken, TchError> {
        let mut values = Values { leaves: &self.leaves, computed: BTreeMap::new() };
        let mut observed = calibrate::observed(self.graph).map(|(id, _)| id).peekable();
        let mut largest = Vec::new();
        for ((id, node), over) in self.graph.nodes().zip(&self.over) {
            if !node.is_leaf() {
                let value = node::compute(self.graph, node, &values, context)?;
                values.computed.insert(id, value);
            }
            if observed.next_if_eq(&id).is_some() {
                largest.push(values.get(id)?.f_abs()?.f_max()?);
            }
            for id in over {
                values.computed.remove(id);
            }
        }
        let largest = Vec::try_from(Tensor::f_stack(&largest, 0)?.f_to_kind(Kind::Double)?)?;
        let loss = loss(self.graph, &values)?;
        let next = |node: &StateNode| Ok((node.current, values.get(node.next)?.f_contiguous()?));
        let state = self.graph.state.iter().map(next).collect::<Result<Vec<_>, TchError>>()?;
        drop(values);
        self.leaves.extend(state);
        Ok(Taken { largest, loss })
    }
}

impl Trial for FloatTrial<'_> {
    fn step(&mut self, context: &StepContext) -> Result<Taken, CalibrateError> {
        no_grad(|| self.take(context)).map_err(failure)
    }
}

/// Values of a step, as long as somebody reads them.
struct Values<'a> {
    leaves: &'a BTreeMap<NodeId, Tensor>,
    computed: BTreeMap<NodeId, Tensor>,
}

impl Values<'_> {
    /// Value of a node, in its shape.
    fn get(&self, id: NodeId) -> Result<&Tensor, TchError> {
        let missing = || TchError::Torch(format!("node {} of the step has no value", id.index()));
        self.leaves.get(&id).or_else(|| self.computed.get(&id)).ok_or_else(missing)
    }
}

fn failure(error: TchError) -> CalibrateError {
    engine_failure(crate::tensor::device(error))
}

fn engine_failure(error: EngineError) -> CalibrateError {
    CalibrateError::Device(match error {
        EngineError::Device(why) => why,
        other => other.to_string(),
    })
}

/// Token numbers are floats as well: a vocabulary is far smaller than the 2^24 integers that 32 bits hold.
fn leaves(
    graph: &StepGraph,
    data: &FloatData,
    state: &FloatState,
    device: tch::Device,
) -> Result<BTreeMap<NodeId, Tensor>, TchError> {
    let mut leaves = BTreeMap::new();
    for (id, node) in graph.nodes() {
        let values = match node.op {
            Op::Features => Some(&data.features),
            Op::Labels => Some(&data.labels),
            Op::State => state.get(&node.site),
            Op::Constant(index) => graph.constants.get(index).map(|constant| &constant.values),
            _ => continue,
        };
        let values = values.ok_or_else(|| TchError::Torch(format!("{} has no values", node.site)))?;
        let tensor = Tensor::f_from_slice(values)?.f_to_kind(Kind::Float)?.f_to_device(device)?;
        leaves.insert(id, tensor.f_reshape(dims(node))?);
    }
    Ok(leaves)
}

/// Which computed values are read for the last time by each node, its own among them if nobody reads it. What the end of the step reads is
/// in none.
fn over(graph: &StepGraph) -> Vec<Vec<NodeId>> {
    let seen = |observed: &Observed| [observed.labels, observed.probabilities];
    let kept = graph.state.iter().map(|node| node.next).chain(graph.observed.iter().flat_map(seen));
    let mut read: BTreeSet<NodeId> = kept.collect();
    let nodes: Vec<(NodeId, &Node)> = graph.nodes().collect();
    let last_read = |(id, node): (NodeId, &Node)| {
        node.inputs.iter().copied().chain([id]).filter(|id| read.insert(*id)).collect::<Vec<_>>()
    };
    let mut over: Vec<_> = nodes.into_iter().rev().map(last_read).collect();
    over.reverse();
    over
}

/// Mean cross entropy of the step's rows.
fn loss(graph: &StepGraph, values: &Values<'_>) -> Result<f64, TchError> {
    let (mut total, mut count) = (0.0, 0.0);
    for observed in &graph.observed {
        let classes = node::row(graph.node(observed.probabilities));
        let probabilities = values.get(observed.probabilities)?.f_reshape([-1, classes])?;
        let labels = values.get(observed.labels)?.f_to_kind(Kind::Int64)?.f_reshape([-1, 1])?;
        let of_labels = probabilities.f_gather(1, &labels, false)?.f_to_kind(Kind::Double)?;
        let logs = of_labels.f_clamp_min(f64::MIN_POSITIVE)?.f_log()?;
        total -= f64::try_from(&logs.f_sum(Kind::Double)?)?;
        count += labels.numel() as f64;
    }
    Ok(total / f64::max(count, 1.0))
}

fn dims(node: &Node) -> Vec<i64> {
    node.dims.iter().map(|d| i64::from(*d)).collect()
}
