//! How a language model is trained, and which is not.

use std::sync::Arc;

use tensorlink_model::{Architecture, Lora, Output, Parameter, Weights, parameters};
use tensorlink_program::scale::equal_parts;
use thiserror::Error;

use super::optimizer::AdamW;
use crate::model::MAX_WIDTH;

/// How a language model is trained.
#[derive(Clone, PartialEq, Debug)]
pub struct Recipe {
    /// Tokens of a sequence.
    pub tokens: u32,
    /// The token that follows texts shorter than that, if there is one.
    pub padding: Option<u32>,
    /// Sequences of a step, each a micro-batch.
    pub sequences: u32,
    /// Bits of the operands of products with weights, 8 or 16.
    pub operand_bits: u8,
    /// Share of embeddings, attention's probabilities and blocks' outputs that is dropped, below 1.
    pub dropout: f64,
    /// The optimiser.
    pub optimizer: AdamW,
    /// What is trained in place of the model's own weights, if they stay as they are.
    pub adapters: Option<Adapters>,
}

/// Adapters that are trained, and the weights that they stand beside.
#[derive(Clone, PartialEq, Debug)]
pub struct Adapters {
    /// Which projections have one.
    pub lora: Lora,
    /// All of the model's weights.
    pub base: Arc<Weights>,
}

impl Recipe {
    /// What is trained, in the order of use.
    pub fn parameters(&self, architecture: &Architecture) -> Vec<Parameter> {
        match &self.adapters {
            Some(adapters) => adapters.lora.parameters(architecture),
            None => parameters(architecture),
        }
    }

    /// Layers that a model is cut by: the embedding, its blocks, and the head. One where the head's weights are the
    /// embedding: both have to be in one stage, and what lies between them with them. With adapters the blocks alone,
    /// as nothing else has a state.
    pub const fn layer_count(&self, architecture: &Architecture) -> usize {
        match self.adapters {
            Some(_) => architecture.layers as usize,
            None if is_tied(architecture) => 1,
            None => architecture.layers as usize + 2,
        }
    }

    /// Which of them an embedding (0), a block (from 1 on) or a head lies in.
    pub(super) fn layer(&self, architecture: &Architecture, layer: usize) -> usize {
        let layer = if self.adapters.is_some() { layer.saturating_sub(1) } else { layer };
        layer.min(self.layer_count(architecture).saturating_sub(1))
    }

    /// Which of them a parameter lives in.
    pub fn layer_of(&self, architecture: &Architecture, parameter: &str) -> usize {
        self.layer(architecture, place_of(architecture, parameter))
    }
}

/// An architecture that is not trained.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Untrainable {
    /// Something that has no gradient yet.
    #[error("{0} is not trained yet; choose a decoder, or an encoder with labels to learn")]
    Part(&'static str),
    /// Sequences longer than the model has places for.
    #[error("sequences of {tokens} tokens: the model takes at most {context}; choose a shorter context")]
    Context {
        /// Tokens of a sequence.
        tokens: u32,
        /// Most tokens of a text.
        context: u32,
    },
    /// Rows that are normalised by one operator.
    #[error(
        "a width of {0} is not trained: a row is normalised whole, and has at most {MAX_WIDTH} elements (rule N-6)"
    )]
    Width(u32),
    /// More shares than there is work for.
    #[error("{shares} shares of {sequences} sequences a step: each needs one; use fewer shares or more sequences")]
    Shares {
        /// Sequences of a step.
        sequences: u32,
        /// Shares asked for.
        shares: u16,
    },
    /// Rows that are reduced in parts.
    #[error(
        "{name} of {length} has no equal parts of at most {MAX_WIDTH} (rule N-6); choose a multiple of 64, up to 262144"
    )]
    Parts {
        /// What is so long.
        name: &'static str,
        /// How long.
        length: u32,
    },
}

pub(super) fn check(a: &Architecture, recipe: &Recipe) -> Result<(), Untrainable> {
    let (tokens, has_classes) = (recipe.tokens, is_of_text(a));
    let refused = [
        (matches!(a.output, Output::Embedding(_)), "an embedding"),
        (!a.causal && matches!(a.output, Output::Logits { .. }), "an encoder with a logit for each word"),
        (a.causal && has_classes, "a decoder with classes"),
        (has_classes && recipe.adapters.is_some(), "an adapter to an encoder"),
    ];
    if let Some((_, what)) = refused.into_iter().find(|(holds, _)| *holds) {
        return Err(Untrainable::Part(what));
    }
    if tokens > a.context {
        return Err(Untrainable::Context { tokens, context: a.context });
    }
    if a.width > MAX_WIDTH {
        return Err(Untrainable::Width(a.width));
    }
    let logits = match a.output {
        Output::Classes(classes) => ("classes", classes),
        _ => ("a vocabulary", a.vocabulary),
    };
    let lengths = [logits, ("an MLP", a.hidden), ("a row of all heads", a.query_width())];
    match lengths.into_iter().find(|(_, length)| equal_parts((*length).into()).is_none()) {
        Some((name, length)) => Err(Untrainable::Parts { name, length }),
        None => Ok(()),
    }
}

/// Where a parameter lives: the embedding (0), its block (from 1 on), or the head.
pub(super) fn place_of(architecture: &Architecture, parameter: &str) -> usize {
    let block = parameter.strip_prefix("layers.").and_then(|rest| rest.split('.').next()?.parse::<usize>().ok());
    match block {
        Some(block) => block.saturating_add(1),
        None if parameter.starts_with("embedding.") => 0,
        None => architecture.layers as usize + 1,
    }
}

pub(super) const fn is_tied(architecture: &Architecture) -> bool {
    matches!(architecture.output, Output::Logits { tied: true })
}

/// Whether a text has one label, rather than each of its tokens.
pub(super) const fn is_of_text(architecture: &Architecture) -> bool {
    matches!(architecture.output, Output::Classes(_))
}
