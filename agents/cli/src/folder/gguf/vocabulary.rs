//! The tokens of a file, and what kind each is of.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tensorlink_graph::transformer::Gguf;

use super::GgufTokenizerError;

/// Longest token, bytes: every way to cut one is looked at.
const MAX_TOKEN: usize = 1024;

/// What a token is, by its number in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Normal,
    Unknown,
    /// One that no text means.
    Control,
    /// One that a text may spell out and that is never cut.
    UserDefined,
    /// A row of the model without a token.
    Unused,
    /// A byte of what has no other token.
    Byte,
}

impl Kind {
    const fn of(number: i32) -> Option<Self> {
        Some(match number {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => return None,
        })
    }
}

/// A token.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub(super) id: u32,
    pub(super) text: Cow<'a, str>,
    pub(super) kind: Kind,
}

/// All tokens of a file, no two of them the same; rows without one are left out.
#[derive(Debug)]
pub(super) struct Vocabulary<'a> {
    /// In the order of their numbers.
    pub(super) tokens: Vec<Token<'a>>,
    /// Places of texts among them.
    places: HashMap<Cow<'a, str>, usize>,
    /// Entries of the list, those without a token among them.
    pub(super) entries: usize,
}

impl<'a> Vocabulary<'a> {
    /// Reads the tokens; `words` are BERT's.
    pub(super) fn of(file: &Gguf<'a>, words: bool) -> Result<Self, GgufTokenizerError> {
        let key = "tokenizer.ggml.token_type";
        let texts = file.texts("tokenizer.ggml.tokens")?.ok_or(GgufTokenizerError::Absent)?;
        let kinds = file.wholes(key)?.ok_or(GgufTokenizerError::Absent)?;
        let entries = texts.len();
        if kinds.len() != entries {
            return Err(GgufTokenizerError::Lengths { key, count: kinds.len(), tokens: entries });
        }
        let (mut tokens, mut places) = (Vec::new(), HashMap::new());
        for ((id, text), number) in (0..).zip(texts).zip(kinds) {
            let wrong = |what: String| GgufTokenizerError::Token { token: id as usize, what };
            let kind = Kind::of(number).ok_or_else(|| wrong(format!("is of the unknown kind {number}")))?;
            if kind == Kind::Unused {
                continue;
            }
            let text = if words { word(text, kind) } else { Cow::Borrowed(*text) };
            if text.is_empty() {
                return Err(wrong("has no text".to_owned()));
            }
            if text.len() > MAX_TOKEN {
                return Err(wrong(format!("has {} bytes, more than {MAX_TOKEN}", text.len())));
            }
            if let Some(other) = places.insert(text.clone(), tokens.len()) {
                let other: &Token<'_> = &tokens[other];
                return Err(wrong(format!("is {text:?}, as token {} is", other.id)));
            }
            tokens.push(Token { id, text, kind });
        }
        Ok(Self { tokens, places, entries })
    }

    /// The token that a key names; none if the file lacks the key.
    pub(super) fn named(&self, file: &Gguf<'_>, key: &'static str) -> Result<Option<&Token<'a>>, GgufTokenizerError> {
        let Some(id) = file.token(&format!("tokenizer.ggml.{key}"))? else { return Ok(None) };
        let found = self.tokens.binary_search_by_key(&id, |token| token.id).ok();
        found.and_then(|place| self.tokens.get(place)).map(Some).ok_or(GgufTokenizerError::Special(key))
    }

    /// The token of a text.
    pub(super) fn get(&self, text: &str) -> Option<&Token<'a>> {
        self.tokens.get(*self.places.get(text)?)
    }

    /// Numbers by texts, as `tokenizer.json` has them.
    pub(super) fn ids(&self) -> Map<String, Value> {
        self.tokens.iter().map(|token| (token.text.to_string(), token.id.into())).collect()
    }

    /// The tokens that are cut out of a text before anything else, as `tokenizer.json` has them.
    pub(super) fn added(&self) -> Vec<Value> {
        let added = |token: &&Token<'_>| matches!(token.kind, Kind::Control | Kind::UserDefined);
        let told = |token: &Token<'_>| {
            json!({ "id": token.id, "content": token.text, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": token.kind == Kind::Control })
        };
        self.tokens.iter().filter(added).map(told).collect()
    }
}

/// A token of BERT as its own vocabulary has it. The file marks what begins a word, not what goes on with one; special
/// tokens stay as they are, which older files tell by their brackets alone.
fn word(text: &str, kind: Kind) -> Cow<'_, str> {
    match text.strip_prefix('\u{2581}') {
        Some(word) => word.into(),
        None if kind == Kind::Control || text.starts_with('[') && text.ends_with(']') => text.into(),
        None => format!("##{text}").into(),
    }
}
