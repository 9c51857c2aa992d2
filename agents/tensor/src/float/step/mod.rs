//! A step graph in libtorch's floats: what language models are calibrated by, and what native mode trains by.
//!
//! The plain interpretation of [`tensorlink_training::step::float`] says what each operator is, and tests hold this one
//! to it. That one keeps every value of a step, on one thread; this one frees what nobody reads any more, and computes
//! on all of them. With bfloat16 the products take operands of bfloat16, as libtorch's autocast has it; state, sums and
//! everything else are in 32 bits.
//!
//! | module | what lives there |
//! |---|---|
//! | `mod` | [`FloatRun`]: the run, and which values are kept how long |
//! | `node` | one operator |
//! | `rows`, `heads` | rows reduced, normalised, rotated and gathered; heads of attention |

mod heads;
mod node;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use tch::kind::Element;
use tch::{Kind, TchError, Tensor, no_grad};
use tensorlink_num::StepContext;
use tensorlink_training::calibrate::{self, CalibrateError, Taken, Trial};
use tensorlink_training::step::float::FloatData;
use tensorlink_training::step::{Node, NodeId, Observed, Op, StateNode, StepGraph};

use super::{FloatError, Precision};
use crate::{Device, cuda};

/// A float run of a step graph on a device.
#[derive(Debug)]
pub struct FloatRun<'a> {
    graph: &'a StepGraph,
    products: Kind,
    /// What is given to a step: data, constants, and the state before it.
    leaves: BTreeMap<NodeId, Tensor>,
    /// For each node, in their order, the values that nobody reads after it.
    over: Vec<Vec<NodeId>>,
}

impl<'a> FloatRun<'a> {
    /// A run that begins at a state, which is by the names that the graph has for it.
    ///
    /// # Errors
    /// [`FloatError::Device`] without the device or enough memory on it, or for a leaf that has no values, or of
    /// another number than its node.
    pub fn new<T: Element>(
        graph: &'a StepGraph,
        data: &FloatData,
        state: &BTreeMap<String, Vec<T>>,
        (device, precision): (Device, Precision),
    ) -> Result<Self, FloatError> {
        if let Device::Cuda(index) = device {
            cuda::reach(index)?;
        }
        let leaves = leaves(graph, data, state, device.into())?;
        Ok(Self { graph, products: precision.kind(), leaves, over: over(graph) })
    }

    /// Takes a step: its state is that after it from then on. Gives the mean cross entropy of the step's rows, in nats.
    ///
    /// # Errors
    /// [`FloatError::Device`].
    pub fn train(&mut self, context: &StepContext) -> Result<f64, FloatError> {
        Ok(no_grad(|| self.take(context, |_, _| Ok(())))?)
    }

    /// The state by name, row-major.
    ///
    /// # Errors
    /// [`FloatError::Device`].
    pub fn state(&self) -> Result<BTreeMap<String, Vec<f32>>, FloatError> {
        let one = |state: &StateNode| {
            let node = self.graph.node(state.current);
            let missing = || TchError::Torch(format!("{} has no values", node.site));
            let values = self.leaves.get(&state.current).ok_or_else(missing)?;
            Ok((node.site.clone(), Vec::try_from(values.f_reshape([-1])?)?))
        };
        self.graph.state.iter().map(one).collect()
    }

    /// Takes a step, and shows every value as it comes.
    fn take(
        &mut self,
        context: &StepContext,
        mut see: impl FnMut(NodeId, &Tensor) -> Result<(), TchError>,
    ) -> Result<f64, TchError> {
        let mut values = Values { leaves: &self.leaves, products: self.products, computed: BTreeMap::new() };
        for ((id, node), over) in self.graph.nodes().zip(&self.over) {
            if !node.is_leaf() {
                let value = node::compute(self.graph, node, &values, context)?;
                values.computed.insert(id, value);
            }
            see(id, values.get(id)?)?;
            for id in over {
                values.computed.remove(id);
            }
        }
        let loss = loss(self.graph, &values)?;
        let next = |node: &StateNode| Ok((node.current, values.get(node.next)?.f_contiguous()?));
        let state = self.graph.state.iter().map(next).collect::<Result<Vec<_>, TchError>>()?;
        drop(values);
        self.leaves.extend(state);
        Ok(loss)
    }

    /// Takes a step, and sees how large everything gets that exponents are made from.
    fn observe(&mut self, context: &StepContext) -> Result<Taken, TchError> {
        let mut observed = calibrate::observed(self.graph).map(|(id, _)| id).peekable();
        let mut largest = Vec::new();
        let loss = self.take(context, |id, value| {
            if observed.next_if_eq(&id).is_some() {
                largest.push(value.f_abs()?.f_max()?);
            }
            Ok(())
        })?;
        let largest = Vec::try_from(Tensor::f_stack(&largest, 0)?.f_to_kind(Kind::Double)?)?;
        Ok(Taken { largest, loss })
    }
}

impl Trial for FloatRun<'_> {
    fn step(&mut self, context: &StepContext) -> Result<Taken, CalibrateError> {
        no_grad(|| self.observe(context)).map_err(|error| FloatError::from(error).into())
    }
}

/// Values of a step, as long as somebody reads them.
struct Values<'a> {
    leaves: &'a BTreeMap<NodeId, Tensor>,
    /// Element type of the operands of products.
    products: Kind,
    computed: BTreeMap<NodeId, Tensor>,
}

impl Values<'_> {
    /// Value of a node, in its shape.
    fn get(&self, id: NodeId) -> Result<&Tensor, TchError> {
        let missing = || TchError::Torch(format!("node {} of the step has no value", id.index()));
        self.leaves.get(&id).or_else(|| self.computed.get(&id)).ok_or_else(missing)
    }
}

/// Token numbers are floats as well: a vocabulary is far smaller than the 2^24 integers that 32 bits hold.
fn leaves<T: Element>(
    graph: &StepGraph,
    data: &FloatData,
    state: &BTreeMap<String, Vec<T>>,
    device: tch::Device,
) -> Result<BTreeMap<NodeId, Tensor>, TchError> {
    let mut leaves = BTreeMap::new();
    for (id, node) in graph.nodes() {
        let values = match node.op {
            Op::Features => Some(Tensor::f_from_slice(&data.features)?),
            Op::Labels => Some(Tensor::f_from_slice(&data.labels)?),
            Op::State => state.get(&node.site).map(|values| Tensor::f_from_slice(values)).transpose()?,
            Op::Constant(index) => {
                let constant = graph.constants.get(index);
                constant.map(|constant| Tensor::f_from_slice(&constant.values)).transpose()?
            }
            _ => continue,
        };
        let values = values.ok_or_else(|| TchError::Torch(format!("{} has no values", node.site)))?;
        let tensor = values.f_to_kind(Kind::Float)?.f_to_device(device)?;
        leaves.insert(id, tensor.f_reshape(dims(node))?);
    }
    Ok(leaves)
}

/// Which computed values are read for the last time by each node, its own among them if nobody reads it. What the end
/// of the step reads is in none.
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

/// A product in the products' element type, in 32 bits again.
fn product(a: &Tensor, b: &Tensor, products: Kind) -> Result<Tensor, TchError> {
    if products == Kind::Float {
        return a.f_matmul(b);
    }
    a.f_to_kind(products)?.f_matmul(&b.f_to_kind(products)?)?.f_to_kind(Kind::Float)
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

fn per(whole: i64, part: i64) -> i64 {
    whole.checked_div(part).unwrap_or_default()
}
