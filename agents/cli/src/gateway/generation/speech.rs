//! The language of a model folder: its tokenizer, its chat template, the tokens that end its texts.

use tokenizers::step_decode_stream;

use super::Prompt;
use super::language::{Language, Spell};
use crate::folder::{ChatTemplate, FolderError, ModelFolder, TextTokenizer, TokenizerError};
use crate::gateway::local::{EmbedError, TokenizeError};

/// Tokens of a prompt before a continuation, by which its first tokens are spelled: whether a word begins with a space may depend on
/// them.
const BEFORE: usize = 6;
const NO_TEMPLATE: &str = "this model has no chat template: use /v1/completions, or a model that was trained to chat";

/// What a folder knows of texts.
#[derive(Debug)]
pub struct Speech {
    tokenizer: TextTokenizer,
    template: Option<ChatTemplate>,
    ends: Vec<u32>,
}

impl Speech {
    /// Reads what `folder` says of chats and of the ends of texts.
    ///
    /// # Errors
    /// A [`FolderError`] that names the file.
    pub fn of(folder: &ModelFolder) -> Result<Self, FolderError> {
        Ok(Self { tokenizer: folder.tokenizer().clone(), template: folder.chat_template()?, ends: folder.ends()? })
    }
}

impl Language for Speech {
    fn encode(&self, prompt: &Prompt) -> Result<Vec<u32>, TokenizeError> {
        match prompt {
            Prompt::Text(text) => self.tokenizer.encode_beginning(text, &self.ends).map_err(refusal),
            Prompt::Tokens(ids) => Ok(ids.clone()),
            Prompt::Chat(messages) => {
                let template = self.template.as_ref().ok_or_else(|| TokenizeError::Refused(NO_TEMPLATE.into()))?;
                let said = messages.iter().map(|message| (message.role, message.content.as_str()));
                let text = template.render(said).map_err(|error| TokenizeError::Refused(error.to_string()))?;
                self.tokenizer.encode_bare(&text).map_err(refusal)
            }
        }
    }

    fn ends(&self) -> &[u32] {
        &self.ends
    }

    fn spell(&self, before: &[u32]) -> Box<dyn Spell + Send + '_> {
        let known = before.get(before.len().saturating_sub(BEFORE)..).unwrap_or_default();
        // Incomplete characters before would become part of what follows.
        let whole = self.tokenizer.decode(known).is_ok_and(|text| !text.ends_with(char::REPLACEMENT_CHARACTER));
        let ids = if whole { known.to_vec() } else { Vec::new() };
        Box::new(Speller { tokenizer: &self.tokenizer, ids, prefix: String::new(), prefix_index: 0 })
    }
}

/// What the sender of a text is told of it.
pub fn refusal(error: TokenizerError) -> TokenizeError {
    match error {
        TokenizerError::Context { tokens, .. } => TokenizeError::TooLong(tokens),
        TokenizerError::Empty | TokenizerError::Bytes { .. } | TokenizerError::Text(_) => {
            TokenizeError::Refused(error.to_string())
        }
        TokenizerError::Syntax(_)
        | TokenizerError::Vocabulary { .. }
        | TokenizerError::Special { .. }
        | TokenizerError::Token { .. } => TokenizeError::Failed(error.into()),
    }
}

/// The state of the tokenizer's own incremental decoding, which [`tokenizers::DecodeStream`] holds with a borrowed tokenizer.
struct Speller<'a> {
    tokenizer: &'a TextTokenizer,
    ids: Vec<u32>,
    prefix: String,
    prefix_index: usize,
}

impl Spell for Speller<'_> {
    fn push(&mut self, token: u32) -> Result<String, EmbedError> {
        let Self { tokenizer, ids, prefix, prefix_index } = self;
        Ok(step_decode_stream(tokenizer.inner(), vec![token], true, ids, prefix, prefix_index)?.unwrap_or_default())
    }

    fn rest(&mut self) -> Result<String, EmbedError> {
        let text = self.tokenizer.decode(&self.ids)?;
        Ok(text.get(self.prefix.len()..).unwrap_or_default().to_owned())
    }
}
