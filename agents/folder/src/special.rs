//! What a folder says of its special tokens beside the file that its tokenizer is made of.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::gguf::template;
use super::gguf::vocabulary::{Kind, Token, Vocabulary};

/// Where older folders have the tokens beside those of the file: numbers by texts.
pub(super) const ADDED: &str = "added_tokens.json";

/// What of `tokenizer_config.json` matters here.
#[derive(Deserialize, Default)]
pub(super) struct Special {
    bos_token: Option<Name>,
    eos_token: Option<Name>,
    unk_token: Option<Name>,
    pad_token: Option<Name>,
    cls_token: Option<Name>,
    sep_token: Option<Name>,
    mask_token: Option<Name>,
    add_bos_token: Option<bool>,
    add_eos_token: Option<bool>,
    pub(super) add_prefix_space: Option<bool>,
    pub(super) legacy: Option<bool>,
    #[serde(default)]
    added_tokens_decoder: BTreeMap<u32, Added>,
}

/// A token by its text, or by more.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Token { content: String },
}

impl Name {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Token { content: text } => text,
        }
    }
}

/// A token beside those of the file.
#[derive(Deserialize)]
struct Added {
    content: String,
    #[serde(default)]
    special: bool,
}

impl Special {
    /// With tokens of [`ADDED`]; what `tokenizer_config.json` says of a number counts more.
    pub(super) fn with(mut self, added: BTreeMap<String, u32>) -> Self {
        for (content, id) in added {
            self.added_tokens_decoder.entry(id).or_insert(Added { content, special: false });
        }
        self
    }

    /// Texts of the tokens that have a part of their own.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        let Self { bos_token, eos_token, unk_token, pad_token, cls_token, sep_token, mask_token, .. } = self;
        let all = [bos_token, eos_token, unk_token, pad_token, cls_token, sep_token, mask_token];
        all.into_iter().flatten().map(Name::text)
    }

    /// The tokens beside those of a vocabulary.
    pub(super) fn beside(&self, vocabulary: &Vocabulary<'_>) -> Vec<Token<'_>> {
        let new = self.added_tokens_decoder.iter().filter(|(id, _)| vocabulary.at(**id).is_none());
        let kind = |added: &Added| if added.special { Kind::Control } else { Kind::UserDefined };
        new.map(|(id, added)| Token { id: *id, text: added.content.as_str().into(), kind: kind(added) }).collect()
    }

    /// The post-processor that puts tokens around texts: the ones that are named, or else the tokenizer's own, where
    /// the folder wants them, or else the tokenizer.
    ///
    /// # Errors
    /// Which token is not there.
    pub(super) fn around<'t>(
        &self,
        (vocabulary, beside): (&Vocabulary<'t>, &[Token<'t>]),
        [first, last]: [(bool, Option<&Token<'t>>); 2],
    ) -> Result<Value, String> {
        let find =
            |name: &Name| vocabulary.get(name.text()).or_else(|| beside.iter().find(|token| token.text == name.text()));
        let token = |wanted: Option<bool>, named: &Option<Name>, (default, own), part: &str| {
            if !wanted.unwrap_or(default) {
                return Ok(None);
            }
            let found = named.as_ref().map_or(own, find);
            found.map(Some).ok_or_else(|| format!("it lacks the token that {part} texts"))
        };
        let first = token(self.add_bos_token, &self.bos_token, first, "begins")?;
        Ok(template(first, token(self.add_eos_token, &self.eos_token, last, "ends")?))
    }
}
