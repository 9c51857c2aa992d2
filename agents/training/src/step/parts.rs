//! A step graph out of bytes that somebody else made: what an interpreter takes for granted is checked before there
//! is one.

use serde::Deserialize;
use thiserror::Error;

use super::{ConstantValues, Node, NodeId, Observed, Op, StateNode, StepGraph};

/// Most nodes of a graph that is read.
pub const MAX_NODES: usize = 1 << 20;
/// Most elements of a node of a graph that is read.
pub const MAX_ELEMENTS: u64 = 1 << 31;

/// Why what was read is no step graph.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PartsError {
    /// Too many nodes; cut the model or its batch.
    #[error("the step graph has {0} nodes, at most {MAX_NODES} are read: train with fewer sequences or micro-batches")]
    Nodes(usize),
    /// A node that has no elements, or more than fit.
    #[error("node {0} of the step graph has no elements, or more than {MAX_ELEMENTS}")]
    Elements(usize),
    /// An operand that does not come before its node, or another node that is not there.
    #[error("node {0} of the step graph refers to one that is not there, or not before it")]
    Reference(usize),
    /// A constant that is not there, or of another length than its node.
    #[error("node {0} of the step graph has no constant of its size")]
    Constant(usize),
    /// A state tensor whose next value is of another size, or whose name stands twice.
    #[error("state {0} of the step graph is not what the step leaves, or stands there twice")]
    State(String),
}

/// The graph's fields as written.
#[derive(Deserialize)]
pub(super) struct Parts {
    nodes: Vec<Node>,
    constants: Vec<ConstantValues>,
    state: Vec<StateNode>,
    observed: Vec<Observed>,
    layers: usize,
    micro_batches: u32,
    ticks: Vec<NodeId>,
}

impl TryFrom<Parts> for StepGraph {
    type Error = PartsError;

    fn try_from(parts: Parts) -> Result<Self, PartsError> {
        let Parts { nodes, constants, state, observed, layers, micro_batches, ticks } = parts;
        if nodes.len() > MAX_NODES {
            return Err(PartsError::Nodes(nodes.len()));
        }
        for (at, node) in nodes.iter().enumerate() {
            let elements = node.dims.iter().try_fold(1u64, |product, d| product.checked_mul(u64::from(*d)));
            if !elements.is_some_and(|elements| (1..=MAX_ELEMENTS).contains(&elements)) {
                return Err(PartsError::Elements(at));
            }
            if node.inputs.iter().any(|input| input.index() >= at) {
                return Err(PartsError::Reference(at));
            }
            if let Op::Constant(index) = node.op
                && constants.get(index).is_none_or(|constant| constant.values.len() != node.elements())
            {
                return Err(PartsError::Constant(at));
            }
        }
        let there = |id: NodeId| nodes.get(id.index()).ok_or_else(|| PartsError::Reference(id.index()));
        let mut names = std::collections::BTreeSet::new();
        for StateNode { current, next, .. } in &state {
            let (current, next) = (there(*current)?, there(*next)?);
            let same = current.elements() == next.elements() && current.op == Op::State;
            if !same || !names.insert(&current.site) {
                return Err(PartsError::State(current.site.clone()));
            }
        }
        let all_there =
            |o: &Observed| [o.labels, o.logits, o.probabilities].into_iter().try_for_each(|id| there(id).map(|_| ()));
        observed.iter().try_for_each(all_there)?;
        ticks.iter().try_for_each(|id| there(*id).map(|_| ()))?;
        Ok(Self { nodes, constants, state, observed, layers, micro_batches, ticks })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Model;

    fn written() -> Value {
        let json = r#"{ "name": "small", "layers": [{ "kind": "linear", "out": 3 }, { "kind": "relu" }],
            "optimizer": { "learning_rate": 0.05, "momentum": 0.9 },
            "batch_size": 4, "micro_batches": 2, "steps": 2, "operand_bits": 8, "seed": 3 }"#;
        let network = Model::parse("small.json", json.as_bytes()).unwrap().network(2, 2).unwrap();
        serde_json::to_value(StepGraph::training(&network, 10)).unwrap()
    }

    fn read(graph: Value) -> Result<StepGraph, String> {
        serde_json::from_value(graph).map_err(|error| error.to_string())
    }

    #[test]
    fn a_graph_comes_back_from_its_bytes() {
        let graph = read(written()).unwrap();
        assert!(!graph.is_empty() && graph.micro_batches == 2);
        assert_eq!(serde_json::to_value(&graph).unwrap(), written());
    }

    #[test]
    fn whatever_an_interpreter_would_stumble_over_is_refused() {
        let refused = |change: &dyn Fn(&mut Value), named: &str| {
            let mut graph = written();
            change(&mut graph);
            let error = read(graph).map(|_| ()).unwrap_err();
            assert!(error.contains(named), "{named}: {error}");
        };
        let last = written()["nodes"].as_array().unwrap().len() - 1;
        refused(&|graph| graph["nodes"][last]["inputs"][0] = json!(last), "not before it");
        refused(&|graph| graph["state"][0]["next"] = json!(last + 1), "not there");
        refused(&|graph| graph["observed"][0]["labels"] = json!(u32::MAX), "not there");
        refused(&|graph| graph["nodes"][last]["dims"] = json!([u32::MAX, u32::MAX]), "elements");
        refused(&|graph| graph["nodes"][last]["dims"] = json!([0]), "elements");
        refused(&|graph| graph["nodes"][last]["op"] = json!({ "Constant": 7 }), "constant");
        refused(&|graph| graph["state"][0]["current"] = json!(last), "not what the step leaves");
        refused(&|graph| graph["state"][1] = graph["state"][0].clone(), "stands there twice");
    }
}
