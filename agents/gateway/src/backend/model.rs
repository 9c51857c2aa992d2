//! A model as it is served: what it is, and which texts it can compute.

use std::sync::Arc;

use super::error::{BackendError, TokenizeError, failed};

/// A model that is served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    /// Its name in requests.
    pub id: String,
    /// When it was made, seconds since 1970.
    pub created: u64,
    /// Most tokens of a text.
    pub context: u32,
    /// Numbers that its tokens have: ids are below this.
    pub vocabulary: u32,
    /// What it is for.
    pub makes: Makes,
}

/// What a model makes of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Makes {
    /// A vector.
    Vectors {
        /// Its elements.
        dimensions: u32,
    },
    /// More text.
    Text,
    /// How well a text answers a query: one number for both.
    Scores {
        /// Whether clients are told the logistic of it, `1 / (1 + e^−x)`.
        sigmoid: bool,
    },
    /// A number for each of some classes.
    Classes {
        /// Their names.
        labels: Arc<[String]>,
        /// Whether a text may be of several: clients are told the logistic of each number, not the softmax of all.
        several: bool,
    },
}

impl Makes {
    /// Elements that are made of a text at once; none if it is continued.
    pub fn elements(&self) -> Option<u32> {
        match self {
            Self::Vectors { dimensions } => Some(*dimensions),
            Self::Scores { .. } => Some(1),
            Self::Classes { labels, .. } => u32::try_from(labels.len()).ok(),
            Self::Text => None,
        }
    }
}

/// Token ids of text `index`, if they are a text that the model can compute.
pub(crate) fn known(
    model: &Model,
    index: usize,
    ids: Result<Vec<u32>, TokenizeError>,
) -> Result<Vec<u32>, BackendError> {
    let (context, vocabulary) = (model.context, model.vocabulary);
    let ids = ids.map_err(|error| match error {
        TokenizeError::TooLong(tokens) => BackendError::TooLong { index, tokens, context },
        TokenizeError::Prompt(reason) => BackendError::Prompt(reason),
        TokenizeError::Refused(reason) => BackendError::Refused { index, reason },
        TokenizeError::Failed(error) => failed("tokenizer", &*error),
    })?;
    if ids.is_empty() {
        return Err(BackendError::Empty { index });
    }
    if u32::try_from(ids.len()).map_or(true, |tokens| tokens > context) {
        return Err(BackendError::TooLong { index, tokens: ids.len(), context });
    }
    match ids.iter().find(|id| **id >= vocabulary) {
        Some(token) => Err(BackendError::UnknownToken { index, token: *token, vocabulary }),
        None => Ok(ids),
    }
}
