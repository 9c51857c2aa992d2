//! An exact model that makes one vector of a text, a score or classes, as an embedder: stages in integers on one
//! engine, one after the other.

use tensorlink_model::{Architecture, Output, Plan, StageRunner, tokens};
use tensorlink_program::Engine;

use super::backend::{Before, EmbedError, TokenizeError};
use super::local::{Embedder, Tokenize};

/// A model whose stages, in order, cover all of its layers.
pub struct Exact<E: Engine> {
    stages: Vec<StageRunner<E>>,
    tokenize: Tokenize,
}

impl<E: Engine> Exact<E> {
    /// Takes the stages of a model, first to last.
    ///
    /// # Errors
    /// If they are not all of a model's, or the model gives logits, not one vector of a text.
    pub fn new(stages: Vec<StageRunner<E>>, tokenize: Tokenize) -> Result<Self, EmbedError> {
        match cover(stages.iter().map(StageRunner::plan))?.output {
            Output::Embedding(_) | Output::Classes(_) => Ok(Self { stages, tokenize }),
            Output::Logits { .. } => Err("this model continues texts and makes no vectors of them".into()),
        }
    }
}

/// The model that stages cover, first to last.
pub(super) fn cover<'a>(plans: impl Iterator<Item = &'a Plan>) -> Result<&'a Architecture, EmbedError> {
    let (mut next, mut last) = (0, None);
    for plan in plans {
        let layers = plan.layers();
        if layers.start != next {
            return Err(format!("a stage begins with layer {}, expected {next}", layers.start).into());
        }
        (next, last) = (layers.end, Some(plan));
    }
    let Some(last) = last else { return Err("a model without stages".into()) };
    let architecture = last.architecture();
    if next != architecture.layers {
        return Err(format!("the stages have {next} layers, the model {}", architecture.layers).into());
    }
    Ok(architecture)
}

impl<E: Engine> Embedder for Exact<E> {
    fn embed(&self, ids: &[u32]) -> Result<Vec<f32>, EmbedError> {
        let mut x = tokens(ids)?;
        for stage in &self.stages {
            x = stage.run(&x)?;
        }
        // A mantissa of up to 24 bits is a float of the same value.
        Ok(x.to_f64().into_iter().map(|value| value as f32).collect())
    }

    fn tokenize(&self, text: &str, before: &Before) -> Result<Vec<u32>, TokenizeError> {
        (self.tokenize)(text, before)
    }
}
