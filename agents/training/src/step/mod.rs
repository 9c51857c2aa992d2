//! The step graph: everything one training step of the whole model computes, before it is cut into stages and before
//! bits and exponents are fixed.
//!
//! The graph is built once ([`build`]) with its gradients ([`autodiff`]) and then interpreted twice: in floats, to
//! calibrate exponents ([`crate::calibrate`]), and in integers, as programs ([`mod@crate::compile`]). Both see the same
//! nodes, so what is calibrated is what runs.

pub mod autodiff;
pub mod build;
pub mod float;
pub mod language;
mod node;
pub mod parts;
mod place;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tensorlink_types::TensorType;

pub use self::node::{Class, Function, Node, NodeId, Op, Phase, Precision, Slot, Spread};

/// A state tensor and the node that is its next value.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StateNode {
    /// Layer.
    pub layer: usize,
    /// The leaf.
    pub current: NodeId,
    /// Its value after the step.
    pub next: NodeId,
}

/// Nodes of one micro-batch that people want to see.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Observed {
    /// The drawn labels.
    pub labels: NodeId,
    /// Inputs of the softmax.
    pub logits: NodeId,
    /// Its output.
    pub probabilities: NodeId,
}

/// Contents of a constant that a graph has beside its data and tables.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ConstantValues {
    /// Name for people.
    pub name: String,
    /// Row-major.
    pub values: Vec<f64>,
}

/// One training step of a whole model. Operands of a node come before it; read from others' bytes, too ([`parts`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "parts::Parts")]
pub struct StepGraph {
    nodes: Vec<Node>,
    /// Contents of constants.
    pub constants: Vec<ConstantValues>,
    /// State tensors by layer, then slot.
    pub state: Vec<StateNode>,
    /// For each micro-batch, what people want to see.
    pub observed: Vec<Observed>,
    /// Number of layers: the least parts that a stage can be made of.
    pub layers: usize,
    /// Micro-batches of the step.
    pub micro_batches: u32,
    /// What is passed on between neighbours where they have nothing to tell each other: every pass hands something on.
    pub ticks: Vec<NodeId>,
}

impl StepGraph {
    /// Every node, in order.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        (0..).map(NodeId).zip(&self.nodes)
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node.
    #[expect(
        clippy::indexing_slicing,
        reason = "ids are made by `push` or checked by `parts`, and nodes are never removed"
    )]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Nodes that the state after the step comes of, or that people want to see: others, as the gradient by what is not
    /// trained, nobody computes.
    pub fn needed(&self) -> BTreeSet<NodeId> {
        let seen = |o: &Observed| [o.labels, o.logits, o.probabilities];
        let mut open: Vec<NodeId> = self.observed.iter().flat_map(seen).collect();
        open.extend(self.state.iter().flat_map(|state| [state.current, state.next]));
        open.extend(&self.ticks);
        let mut needed = BTreeSet::new();
        while let Some(id) = open.pop() {
            if needed.insert(id) {
                open.extend(&self.node(id).inputs);
            }
        }
        needed
    }

    /// First micro-batch of each round, as few as can be: whose forward passes read what backward passes of earlier
    /// rounds made.
    pub fn rounds(&self) -> Vec<u32> {
        // The latest backward pass that each forward pass reads of.
        let mut latest: BTreeMap<u32, u32> = BTreeMap::new();
        for node in &self.nodes {
            let Phase::Forward(reader) = node.phase else { continue };
            for input in &node.inputs {
                if let Phase::Backward(made) = self.node(*input).phase {
                    let known = latest.entry(reader).or_default();
                    *known = made.max(*known);
                }
            }
        }
        let mut rounds = vec![0];
        for (reader, made) in latest {
            if rounds.last().is_none_or(|first| *first <= made) {
                rounds.push(reader);
            }
        }
        rounds
    }

    /// Appends a node.
    fn push(&mut self, node: Node) -> NodeId {
        // SAFETY of the cast: a network is bounded to 64 layers and 64 micro-batches, far below 2^32 nodes.
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        id
    }
}

/// Types of the data set's tensors, which the graph's leaves take over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataTypes {
    /// `[rows, features]`.
    pub features: TensorType,
    /// `[rows]`.
    pub labels: TensorType,
}
