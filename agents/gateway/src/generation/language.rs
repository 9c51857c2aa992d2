//! The port to a model's words: prompts to tokens, tokens to text.

use super::Prompt;
use crate::backend::error::{EmbedError, TokenizeError};

/// A model's tokenizer and chat template. Calls may block for as long as a text is long.
pub trait Language: Send + Sync + 'static {
    /// Tokens of a prompt, never cut short, with what the model expects before it.
    ///
    /// # Errors
    /// [`TokenizeError`]. Ids beyond the context or the vocabulary may be given; they are refused later.
    fn encode(&self, prompt: &Prompt) -> Result<Vec<u32>, TokenizeError>;

    /// Tokens that end a text.
    fn ends(&self) -> &[u32];

    /// Text of tokens that follow `before`, the last tokens of a prompt, one after the other.
    fn spell(&self, before: &[u32]) -> Box<dyn Spell + Send + '_>;
}

/// Text of tokens as they come.
pub trait Spell {
    /// Takes a token; gives the text that is certain now, in whole characters.
    ///
    /// # Errors
    /// If the tokenizer cannot decode it.
    fn push(&mut self, token: u32) -> Result<String, EmbedError>;

    /// What was held back because its character is incomplete, at the end of a text.
    ///
    /// # Errors
    /// If the tokenizer cannot decode it.
    fn rest(&mut self) -> Result<String, EmbedError>;
}
