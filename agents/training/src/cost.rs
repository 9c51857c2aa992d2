//! What a step costs, layer by layer, before it is cut: by this a planner chooses who computes which of them.

use crate::start::Training;
use crate::step::{Node, Op, Phase, StepGraph};

/// Bytes of an element on its way from one stage to the next, at most.
const ELEMENT: u64 = 4;

/// What a layer costs whoever computes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LayerCost {
    /// Multiply-adds of a micro-batch, forward and back, with its share of what is done once a step.
    pub multiply_adds: u64,
    /// Bytes of memory that a worker lends it, an estimate from above.
    pub bytes: u64,
    /// Bytes of a micro-batch that later layers take of it and of those before it.
    pub handed: u64,
}

impl Training {
    /// What each layer costs in one of the pipelines that share a step's sequences, cut into so many stages.
    pub fn costs(&self, stages: usize) -> Vec<LayerCost> {
        let passes = u64::from(self.passes()).saturating_mul(self.shares().max(1).into());
        let (products, handed) = (self.graph.multiply_adds(), self.graph.handed());
        let costs = self.layer_bytes(stages).into_iter().zip(products).zip(handed);
        costs
            .map(|((bytes, products), handed)| LayerCost {
                multiply_adds: products.div_ceil(passes),
                bytes,
                handed: handed.saturating_mul(ELEMENT).div_ceil(passes),
            })
            .collect()
    }

    /// Micro-batches of a step that follow each other through the stages of a share.
    pub fn passes(&self) -> u32 {
        self.graph.micro_batches.max(1).div_ceil(u32::from(self.shares()).max(1))
    }
}

impl StepGraph {
    /// Multiply-adds of a step in each layer: those of its matrix products, which dominate.
    pub fn multiply_adds(&self) -> Vec<u64> {
        let mut sums = vec![0u64; self.layers];
        for id in self.needed() {
            let node = self.node(id);
            if let Some(sum) = sums.get_mut(node.layer) {
                *sum = sum.saturating_add((node.elements() as u64).saturating_mul(self.terms(node)));
            }
        }
        sums
    }

    /// Products that an element of a node sums; 0 where it is no matrix product.
    fn terms(&self, node: &Node) -> u64 {
        let row = |operand: usize| {
            let dims = node.inputs.get(operand).map(|id| &self.node(*id).dims);
            dims.and_then(|dims| dims.last()).map_or(0, |row| u64::from(*row))
        };
        match node.op {
            Op::MatMul | Op::ScaledMatMul { .. } | Op::HeadMix { .. } => row(1),
            // A row of the queries is one of every head.
            Op::HeadScores { heads } => row(0) / u64::from(heads.max(1)),
            _ => 0,
        }
    }

    /// Elements of a step's forward passes that layers after each take of it or of those before it.
    fn handed(&self) -> Vec<u64> {
        let mut last = vec![0usize; self.len()];
        for (_, node) in self.nodes() {
            for input in &node.inputs {
                if let Some(reader) = last.get_mut(input.index()) {
                    *reader = node.layer.max(*reader);
                }
            }
        }
        let mut sums = vec![0u64; self.layers];
        for ((_, node), last) in self.nodes().zip(last) {
            if node.is_leaf() || !matches!(node.phase, Phase::Forward(_)) {
                continue;
            }
            for sum in sums.iter_mut().take(last).skip(node.layer) {
                *sum = sum.saturating_add(node.elements() as u64);
            }
        }
        sums
    }
}
