//! Why texts were not computed: as models and tokenizers say it, and as whoever asked is told.

use std::time::Duration;

use thiserror::Error;

/// Why a model could not compute a text. For the log.
pub type EmbedError = Box<dyn std::error::Error + Send + Sync>;

/// Why a text has no tokens that the model could compute.
#[derive(Debug, Error)]
pub enum TokenizeError {
    /// More tokens than the model takes.
    #[error("the text has {0} tokens")]
    TooLong(usize),
    /// A name of no prompt of the model; the words are for its sender.
    #[error("{0}")]
    Prompt(String),
    /// No text for this model; the words are for its sender and say what to do.
    #[error("{0}")]
    Refused(String),
    /// The tokenizer's own fault.
    #[error(transparent)]
    Failed(#[from] EmbedError),
}

/// Why texts were not computed. Texts are counted from 0, in the order of the request.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BackendError {
    /// No such model: ask for one of [`Backend::models`](super::Backend::models).
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
    /// A name of no prompt of the model: choose one of those that the words name.
    #[error("{0}")]
    Prompt(String),
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

/// The whole chain of an error, on one line.
pub(crate) fn failed(what: &str, error: &(dyn std::error::Error + 'static)) -> BackendError {
    let causes: Vec<String> =
        std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect();
    BackendError::Failed(format!("{what}: {}", causes.join(": ")))
}
