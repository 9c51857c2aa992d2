//! What the gateway needs from whatever computes: the port between HTTP and models.

use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use super::generation::{Ask, Generation};

/// A model that is served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    /// Its name in requests.
    pub id: String,
    /// When it was made, seconds since 1970.
    pub created: u64,
    /// Most tokens of a text.
    pub context: u32,
    /// Tokens it knows: ids are below this.
    pub vocabulary: u32,
    /// What it is for.
    pub makes: Makes,
}

/// What a model makes of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Makes {
    /// A vector.
    Vectors {
        /// Its elements.
        dimensions: u32,
    },
    /// More text.
    Text,
}

/// A text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// As a person writes it. The model's tokenizer adds what the model expects around it.
    Text(String),
    /// Token ids, taken as they are: nothing is added.
    Tokens(Vec<u32>),
}

/// What a model makes of a text.
#[derive(Clone, PartialEq, Debug)]
pub struct Embedding {
    /// [`Makes::Vectors::dimensions`] finite elements.
    pub vector: Vec<f32>,
    /// Tokens of the text, those added by the tokenizer among them.
    pub tokens: u32,
}

/// Why texts were not computed. Texts are counted from 0, in the order of the request.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BackendError {
    /// No such model: ask for one of [`Backend::models`].
    #[error("the model {0:?} is not served here")]
    UnknownModel(String),
    /// A model that makes something else of texts: ask for one that makes this.
    #[error("the model {0:?} makes something else of texts")]
    OtherKind(String),
    /// A text that leaves no room for what is to follow: shorten it, or ask for less.
    #[error("input {index} has {tokens} tokens and {wanted} are to follow, this model takes at most {context}")]
    NoRoom {
        /// Which text.
        index: usize,
        /// Its tokens.
        tokens: usize,
        /// Tokens to follow.
        wanted: u32,
        /// Most tokens of a text.
        context: u32,
    },
    /// A text without tokens: leave it out.
    #[error("input {index} has no tokens")]
    Empty {
        /// Which text.
        index: usize,
    },
    /// A text beyond the context: shorten it.
    #[error("input {index} has {tokens} tokens, this model takes at most {context}")]
    TooLong {
        /// Which text.
        index: usize,
        /// Its tokens.
        tokens: usize,
        /// Most tokens of a text.
        context: u32,
    },
    /// A text that the model's tokenizer does not take: change it as the reason says.
    #[error("input {index}: {reason}")]
    Refused {
        /// Which text.
        index: usize,
        /// Why, for its sender.
        reason: String,
    },
    /// A token id that the model does not know: use the model's own tokenizer.
    #[error("input {index} holds token {token}, this model knows tokens below {vocabulary}")]
    UnknownToken {
        /// Which text.
        index: usize,
        /// The token.
        token: u32,
        /// Tokens the model knows.
        vocabulary: u32,
    },
    /// Too much is waiting: come back later.
    #[error("too many requests are waiting")]
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
    /// The model no longer answers, as at the end of the process: try elsewhere.
    #[error("the model has stopped")]
    Stopped,
    /// The model failed over this very input: tell the operator. The text is for the log, not for the client.
    #[error("{0}")]
    Failed(String),
}

/// Computes. Every call is bounded in time by its caller, who drops the future: work not begun is then never begun.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// What is served; the same at every call.
    fn models(&self) -> &[Model];

    /// Whether every model still answers.
    fn alive(&self) -> bool;

    /// A vector for each text, in order. One bad text refuses them all, before any is computed.
    ///
    /// # Errors
    /// [`BackendError`].
    async fn embed(&self, model: &str, inputs: Vec<Input>) -> Result<Vec<Embedding>, BackendError> {
        let _ = inputs;
        Err(BackendError::OtherKind(model.to_owned()))
    }

    /// Continues texts, in order. One bad text refuses them all, before any is begun.
    ///
    /// # Errors
    /// [`BackendError`].
    async fn generate(&self, model: &str, ask: Ask) -> Result<Vec<Generation>, BackendError> {
        let _ = ask;
        Err(BackendError::OtherKind(model.to_owned()))
    }
}
