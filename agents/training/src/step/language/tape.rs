//! What a layer's way forth leaves for its way back.

use std::collections::BTreeMap;

use tensorlink_model::block::Input;

use super::Quantised;
use super::norm::NormPass;
use crate::step::NodeId;

/// What the way back needs of a layer's way forth. Nodes stand for the layer's input until they are known.
#[derive(Clone, Debug)]
pub(super) struct Tape {
    pub(super) layer: usize,
    /// Norms by their names, those that the architecture has.
    pub(super) norms: BTreeMap<String, NormPass>,
    pub(super) operands: BTreeMap<Input, Quantised>,
    input: NodeId,
    /// Queries and keys as they are multiplied.
    pub(super) query_key: [NodeId; 2],
    pub(super) value: NodeId,
    pub(super) probabilities: NodeId,
    /// What values are mixed by: the probabilities that are not dropped.
    pub(super) shares: NodeId,
    /// What the MLP activates.
    pub(super) first: NodeId,
    pub(super) activated: NodeId,
    /// The inner vector of a gated MLP, which the activated is multiplied with.
    pub(super) inner: NodeId,
}

impl Tape {
    pub(super) const fn new(layer: usize, input: NodeId) -> Self {
        Self {
            layer,
            norms: BTreeMap::new(),
            operands: BTreeMap::new(),
            input,
            query_key: [input; 2],
            value: input,
            probabilities: input,
            shares: input,
            first: input,
            activated: input,
            inner: input,
        }
    }

    /// The name of a part of the layer.
    pub(super) fn name(&self, part: &str) -> String {
        format!("layers.{}.{part}", self.layer)
    }

    /// What a projection took.
    pub(super) fn operand(&self, input: Input) -> Quantised {
        let unknown = Quantised { mantissas: self.input, scale: self.input };
        self.operands.get(&input).copied().unwrap_or(unknown)
    }
}
