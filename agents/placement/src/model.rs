//! What a model asks of whoever computes it, layer by layer.

use crate::node::Precision;
use crate::number::{Invalid, at_least_zero, counted, positive};

/// The most layers that can be planned: the deepest models published have fewer than 200.
pub const MAX_LAYERS: usize = 512;

/// What a plan is for. Its unit of work is what costs are per.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One token of one answer.
    Decode,
    /// A micro-batch of a prompt.
    Prefill,
    /// A micro-batch forward, and its gradients back.
    Training,
}

/// What one unit of work costs in one layer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Multiply-adds.
    pub macs: f64,
    /// Bytes that the device reads from its memory.
    pub reads: f64,
    /// Bytes held beside the weights: keys and values, or gradients, moments and activations.
    pub state: f64,
    /// Bytes handed to the next stage, and back again in training.
    pub activations: f64,
}

/// One layer. Embeddings belong to the first, the head to the last.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Layer {
    /// Bytes of weights.
    pub weights: f64,
    /// Per token.
    pub decode: Cost,
    /// Per micro-batch of a prompt.
    pub prefill: Cost,
    /// Per micro-batch of training.
    pub training: Cost,
}

impl Layer {
    /// What a unit of work costs.
    pub fn cost(&self, kind: Kind) -> &Cost {
        match kind {
            Kind::Decode => &self.decode,
            Kind::Prefill => &self.prefill,
            Kind::Training => &self.training,
        }
    }
}

/// A model as a planner sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelProfile {
    /// How people call it.
    pub name: String,
    /// In what its weights are multiplied.
    pub precision: Precision,
    /// Tokens of a micro-batch.
    pub micro_batch: f64,
    /// From the first to the last.
    pub layers: Vec<Layer>,
}

impl ModelProfile {
    /// # Errors
    /// For no layers or more than [`MAX_LAYERS`], for a layer that costs nothing, and for amounts that are no numbers.
    pub fn check(&self) -> Result<(), Invalid> {
        counted("layers", self.layers.len(), 1, MAX_LAYERS)?;
        positive("tokens of a micro-batch", self.micro_batch)?;
        for layer in &self.layers {
            positive("bytes of a layer's weights", layer.weights)?;
            for cost in [layer.decode, layer.prefill, layer.training] {
                positive("multiply-adds of a layer", cost.macs)?;
                at_least_zero("bytes that a layer reads", cost.reads)?;
                at_least_zero("bytes of a layer's state", cost.state)?;
                positive("bytes of a layer's activations", cost.activations)?;
            }
        }
        Ok(())
    }

    /// Bytes that a device holds to compute all layers.
    pub fn bytes(&self, kind: Kind) -> f64 {
        self.layers.iter().map(|layer| layer.weights + layer.cost(kind).state).sum()
    }
}
