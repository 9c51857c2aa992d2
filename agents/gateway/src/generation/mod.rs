//! Continuing texts, token by token. It knows neither HTTP nor where a model is computed.
//!
//! | module | what lives there |
//! |---|---|
//! | here | what is asked for, and what comes of it, piece by piece |
//! | [`language`] | the port to a model's tokenizer and chat template |
//! | [`stops`], [`writer`] | tokens to text: whole characters only, ended at stop sequences |
//! | [`sampling`] | how the tokens of a request are chosen |
//! | [`sequence`] | one text on its way: what to compute next, what its token means |
//! | [`stages`] | the port to stages elsewhere, a text at a time; the loop over it |
//! | [`decoder`] | the port to a decoder in this process, many texts at a time |
//! | [`batch`], `group` | the loop over it: texts join and leave at every token |
//! | [`cached`] | an exact decoder with the keys and values of its texts |

pub mod batch;
pub mod cached;
pub mod decoder;
mod group;
pub mod language;
pub mod sampling;
pub mod sequence;
pub mod stages;
pub mod stops;
pub mod writer;

use std::collections::BTreeMap;

use serde::Serialize;
pub use tensorlink_model::choice::SamplingParams;
use tokio::sync::mpsc;

pub use self::sampling::Sampling;
use super::backend::error::BackendError;

/// What a text begins with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Prompt {
    /// As a person writes it; the tokenizer adds what begins a text.
    Text(String),
    /// Token ids, taken as they are.
    Tokens(Vec<u32>),
    /// A conversation, put into the model's own form by its chat template.
    Chat(Conversation),
}

/// What a request tells a chat template besides, by name. Tables within keep the order in which they were written: a
/// template may write them out.
pub type Variables = BTreeMap<String, minijinja::Value>;

/// A conversation, as chat templates take it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Conversation {
    /// What was said, in order.
    pub messages: Vec<Message>,
    /// What else the template may ask for, by name; what it always knows is not replaced.
    pub variables: Variables,
}

/// A message of a conversation, as chat templates take it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// What was said.
    pub content: String,
}

/// Texts to continue, all in one manner.
#[derive(Clone, PartialEq, Debug)]
pub struct Ask {
    /// How they begin; at least one.
    pub prompts: Vec<Prompt>,
    /// Most tokens of a continuation, at least 1: fewer if the context ends before.
    pub most: u32,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// A text ends before the first of these that it would contain; none of them is empty.
    pub stops: Vec<String>,
}

/// Why a text ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model ended it, or a stop sequence did.
    Stop,
    /// It has as many tokens as were asked for, or as the context holds.
    Length,
}

/// What one more token came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The token.
    pub token: u32,
    /// Text that is now certain: nothing while a character is incomplete, or while a stop sequence may have begun.
    pub text: String,
    /// On the last piece, why it is the last.
    pub finish: Option<Finish>,
}

/// A text on its way. Dropping this ends it at its next token.
#[derive(Debug)]
pub struct Generation {
    /// Tokens of the prompt, those added by tokenizer or template among them.
    pub prompt_tokens: u32,
    /// One for each token, the last with [`Piece::finish`], or an error at the end. Ends without either if the model
    /// has stopped. Holds as many as there can be, so that a slow reader delays nobody.
    pub pieces: mpsc::Receiver<Result<Piece, BackendError>>,
}
