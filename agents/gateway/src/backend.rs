//! What the gateway needs from whatever computes: the port between HTTP and models.
//!
//! | module | what lives there |
//! |---|---|
//! | here | the port; texts, what is made of them, ids of receipts |
//! | `model` | what a model is, and which texts it can compute |
//! | `error` | why texts were not computed |

pub(crate) mod error;
pub(crate) mod model;

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use thiserror::Error;

pub use self::error::{BackendError, EmbedError, TokenizeError};
pub use self::model::{Makes, Model};
use super::generation::{Ask, Generation};

/// `1 / (1 + e^−x)`.
pub fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// What a model reads before each text, but for token ids.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Before {
    /// Its default prompt, if it has one.
    #[default]
    Default,
    /// Its prompt of this name.
    Prompt(String),
    /// A query, which the text is scored by.
    Query(String),
}

/// A text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// As a person writes it. The model's tokenizer adds what the model expects around it.
    Text(String),
    /// Token ids, taken as they are: nothing is added.
    Tokens(Vec<u32>),
}

/// Texts of which vectors, scores or classes are wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Texts {
    /// The texts.
    pub inputs: Vec<Input>,
    /// What stands before each.
    pub before: Before,
}

impl From<Vec<Input>> for Texts {
    fn from(inputs: Vec<Input>) -> Self {
        Self { inputs, before: Before::Default }
    }
}

/// What a model makes of a text.
#[derive(Clone, PartialEq, Debug)]
pub struct Embedding {
    /// [`Makes::elements`] finite ones.
    pub vector: Vec<f32>,
    /// Tokens that were read of the text, those added by the tokenizer among them.
    pub tokens: u32,
}

/// What a model makes of the texts of a request.
#[derive(Clone, PartialEq, Debug)]
pub struct Embedded {
    /// One for each text, in order.
    pub embeddings: Vec<Embedding>,
    /// By which the receipts of those who computed them can be asked for; none if this process did.
    pub receipt: Option<ReceiptId>,
}

/// Texts on their way.
#[derive(Debug)]
pub struct Generated {
    /// One for each prompt, in order.
    pub generations: Vec<Generation>,
    /// By which the receipts of those who compute them can be asked for, once the texts have ended; none if this
    /// process does.
    pub receipt: Option<ReceiptId>,
}

/// Names the receipts of a response: `JOB-TEXT`, or `JOB-FIRST..LAST` for several texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiptId {
    /// The serving job.
    pub job: u64,
    /// The number of the first text in it.
    pub first: u32,
    /// The number of the last text; not below the first.
    pub last: u32,
}

/// Not an id of receipts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("an id of receipts is JOB-TEXT or JOB-FIRST..LAST")]
pub struct NoReceiptId;

impl fmt::Display for ReceiptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, first, last } = self;
        if first == last { write!(f, "{job}-{first}") } else { write!(f, "{job}-{first}..{last}") }
    }
}

impl FromStr for ReceiptId {
    type Err = NoReceiptId;

    fn from_str(text: &str) -> Result<Self, NoReceiptId> {
        let (job, texts) = text.split_once('-').ok_or(NoReceiptId)?;
        let (first, last) = texts.split_once("..").unwrap_or((texts, texts));
        let number = |text: &str| text.parse().map_err(|_| NoReceiptId);
        let id = Self { job: job.parse().map_err(|_| NoReceiptId)?, first: number(first)?, last: number(last)? };
        if id.first <= id.last { Ok(id) } else { Err(NoReceiptId) }
    }
}

/// Why there are no receipts.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ReceiptError {
    /// This process computes itself, and signs nothing.
    #[error("this gateway computes by itself: its texts have no receipts")]
    Local,
    /// Never given, or too long ago.
    #[error("no receipts of this id are kept")]
    Unknown,
    /// They cannot be read. The text is for the log, not for the client.
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

    /// A vector for each text, its score or its classes', in order. One bad text refuses them all, before any
    /// is computed.
    ///
    /// # Errors
    /// [`BackendError`].
    async fn embed(&self, model: &str, texts: Texts) -> Result<Embedded, BackendError> {
        let _ = texts;
        Err(BackendError::OtherKind(model.to_owned()))
    }

    /// Continues texts, in order. One bad text refuses them all, before any is begun.
    ///
    /// # Errors
    /// [`BackendError`].
    async fn generate(&self, model: &str, ask: Ask) -> Result<Generated, BackendError> {
        let _ = ask;
        Err(BackendError::OtherKind(model.to_owned()))
    }

    /// The receipts of a response's texts, as JSON.
    ///
    /// # Errors
    /// [`ReceiptError`].
    fn receipts(&self, _id: ReceiptId) -> Result<serde_json::Value, ReceiptError> {
        Err(ReceiptError::Local)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_receipts_are_read_as_they_are_written() {
        for (first, last, text) in [(17, 17, "3-17"), (17, 19, "3-17..19")] {
            let id = ReceiptId { job: 3, first, last };
            assert_eq!(id.to_string(), text);
            assert_eq!(text.parse(), Ok(id));
        }
        for wrong in ["", "3", "3-", "-1", "3-19..17", "3-17..", "3-4294967296", "a-b", "3-1-2"] {
            assert_eq!(wrong.parse::<ReceiptId>(), Err(NoReceiptId), "{wrong}");
        }
    }
}
