//! The language of a model folder: its tokenizer, its chat template, the tokens that end its texts.

use tensorlink_folder::{ChatTemplate, FolderError, ModelFolder, Spelling, TextTokenizer, TokenizerError};
use tensorlink_gateway::backend::{EmbedError, TokenizeError};
use tensorlink_gateway::generation::language::{Language, Spell};
use tensorlink_gateway::generation::{Conversation, Prompt};

/// Tokens of a prompt before a continuation, by which its first tokens are spelled: whether a word begins with a space
/// may depend on them.
const BEFORE: usize = 6;
const NO_TEMPLATE: &str = "this model has no chat template: use /v1/completions, or a model that was trained to chat";

/// What a folder knows of texts.
#[derive(Debug)]
pub struct HfTokenizer {
    tokenizer: TextTokenizer,
    /// Or why there is none.
    template: Result<ChatTemplate, String>,
    ends: Vec<u32>,
}

impl HfTokenizer {
    /// Reads what `folder` says of chats and of the ends of texts. Where its chat template is wrong, only chats are
    /// refused.
    ///
    /// # Errors
    /// A [`FolderError`] that names the file.
    pub fn of(folder: &ModelFolder) -> Result<Self, FolderError> {
        let template = match folder.chat_template() {
            Err(FolderError::Template(error)) => {
                tracing::warn!("{}: chats are refused: {error}", folder.path().display());
                Err(error.to_string())
            }
            found => found?.ok_or_else(|| NO_TEMPLATE.to_owned()),
        };
        Ok(Self { tokenizer: folder.tokenizer().clone(), template, ends: folder.ends()? })
    }
}

impl Language for HfTokenizer {
    fn encode(&self, prompt: &Prompt) -> Result<Vec<u32>, TokenizeError> {
        match prompt {
            Prompt::Text(text) => self.tokenizer.encode_beginning(text, &self.ends).map_err(refusal),
            Prompt::Tokens(ids) => Ok(ids.clone()),
            Prompt::Chat(Conversation { messages, variables }) => {
                let template = self.template.as_ref().map_err(|reason| TokenizeError::Refused(reason.clone()))?;
                let said = messages.iter().map(|message| (message.role, message.content.as_str()));
                let text = template.render_with(said, variables);
                let text = text.map_err(|error| TokenizeError::Refused(error.to_string()))?;
                self.tokenizer.encode_bare(&text).map_err(refusal)
            }
        }
    }

    fn ends(&self) -> &[u32] {
        &self.ends
    }

    fn spell(&self, before: &[u32]) -> Box<dyn Spell + Send + '_> {
        let known = before.get(before.len().saturating_sub(BEFORE)..).unwrap_or_default();
        Box::new(Speller { tokenizer: &self.tokenizer, spelling: self.tokenizer.spelling(known) })
    }
}

/// What the sender of a text is told of it.
pub fn refusal(error: TokenizerError) -> TokenizeError {
    match error {
        TokenizerError::Context { tokens, .. } => TokenizeError::TooLong(tokens),
        error @ TokenizerError::Prompt(_) => TokenizeError::Prompt(error.to_string()),
        TokenizerError::Empty
        | TokenizerError::Bytes { .. }
        | TokenizerError::Character(_)
        | TokenizerError::Text(_) => TokenizeError::Refused(error.to_string()),
        TokenizerError::Syntax(_)
        | TokenizerError::Instead { .. }
        | TokenizerError::Gguf(_)
        | TokenizerError::Vocabulary { .. }
        | TokenizerError::Special { .. }
        | TokenizerError::Token { .. } => TokenizeError::Failed(error.into()),
    }
}

/// A text as its tokens come.
struct Speller<'a> {
    tokenizer: &'a TextTokenizer,
    spelling: Spelling,
}

impl Spell for Speller<'_> {
    fn push(&mut self, token: u32) -> Result<String, EmbedError> {
        Ok(self.tokenizer.spell(token, &mut self.spelling)?)
    }

    fn rest(&mut self) -> Result<String, EmbedError> {
        Ok(self.tokenizer.spell_rest(&self.spelling)?)
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_model::Family;
    use tensorlink_model::fixture::Folder;
    use tensorlink_model::fixture::gguf::File;

    use super::*;

    /// A tokenizer whose tokens are bytes, as those of GPT-2 and Llama 3 at their bottom.
    fn bytes() -> TextTokenizer {
        let alphabet: Vec<char> = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet().into_iter().collect();
        let mut alphabet = alphabet;
        alphabet.sort_unstable();
        let vocabulary: serde_json::Map<String, serde_json::Value> =
            alphabet.iter().enumerate().map(|(id, byte)| (byte.to_string(), id.into())).collect();
        let json = serde_json::json!({
            "version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
            "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
            "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
        });
        let mut folder = Folder::new(Family::Llama);
        folder.config.insert("vocab_size".into(), 256.into());
        folder.config.insert("max_position_embeddings".into(), 64.into());
        let description = tensorlink_model::describe(&folder.config_json(), None).unwrap();
        TextTokenizer::new(json.to_string().as_bytes(), &description).unwrap()
    }

    fn speech() -> HfTokenizer {
        HfTokenizer { tokenizer: bytes(), template: Err(NO_TEMPLATE.to_owned()), ends: vec![] }
    }

    fn spelled(before: &str, text: &str, cut: usize) -> Vec<String> {
        let speech = speech();
        let ids = |text: &str| if text.is_empty() { vec![] } else { speech.tokenizer.encode(text).unwrap() };
        let mut spell = speech.spell(&ids(before));
        let mut parts: Vec<String> = ids(text).into_iter().take(cut).map(|id| spell.push(id).unwrap()).collect();
        parts.push(spell.rest().unwrap());
        parts
    }

    #[test]
    fn characters_come_whole() {
        assert_eq!(spelled("", "aé日!", 9), ["a", "", "é", "", "", "日", "!", ""]);
        assert_eq!(spelled("prompt: ", " é", 9), [" ", "", "é", ""]);
        assert_eq!(spelled("日", "日", 9), ["", "", "日", ""]);
        assert_eq!(spelled("prompt", "", 9), [""]);
    }

    #[test]
    fn what_is_never_completed_is_shown_as_such_at_the_end() {
        assert_eq!(spelled("", "a日", 3), ["a", "", "", "\u{fffd}"]);
        assert_eq!(spelled("x", "日", 2), ["", "", "\u{fffd}"]);
    }

    #[test]
    fn a_prompt_that_ends_within_a_character_is_not_repeated() {
        let speech = speech();
        let prompt = speech.tokenizer.encode("long prompt 日").unwrap();
        let mut spell = speech.spell(&prompt[..prompt.len() - 1]);
        let next = speech.tokenizer.encode("ok").unwrap();
        assert_eq!(spell.push(next[0]).unwrap() + &spell.push(next[1]).unwrap(), "ok");
    }

    #[test]
    fn a_template_that_is_wrong_refuses_chats_alone() {
        let mut file = File::of(&Folder::new(Family::Llama));
        let dir = tempfile::tempdir().unwrap();
        let chat = |file: &File| {
            let path = dir.path().join("tiny.gguf");
            std::fs::write(&path, file.bytes()).unwrap();
            let speech = HfTokenizer::of(&ModelFolder::open(&path).unwrap()).unwrap();
            assert_eq!(speech.encode(&Prompt::Text("the".into())).unwrap(), [0, 11]);
            speech.encode(&Prompt::Chat(Conversation::default())).unwrap_err().to_string()
        };
        assert!(chat(&file).contains("no chat template"));
        file.set("tokenizer.chat_template", "{% if %}".into());
        let said = chat(&file);
        assert!(said.contains("the chat template in tokenizer.chat_template cannot be read"), "{said}");
    }
}
