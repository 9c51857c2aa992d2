//! The tokens of a file, and what kind each is of.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tensorlink_model::Gguf;

use super::GgufTokenizerError;

/// Longest token, bytes: every way to cut one is looked at.
const MAX_TOKEN: usize = 1024;

/// What a token is, by its number in the file, which is SentencePiece's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
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
    pub(crate) const fn of(number: i32) -> Option<Self> {
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
pub(crate) struct Token<'a> {
    pub(crate) id: u32,
    pub(crate) text: Cow<'a, str>,
    pub(crate) kind: Kind,
}

impl Token<'_> {
    /// As one that is cut out of a text before anything else, as `tokenizer.json` has it; `normalized` says whether
    /// one that a text may mean is written as normalised texts are, and looked for in them.
    pub(crate) fn added(&self, normalized: bool) -> Value {
        let special = self.kind == Kind::Control;
        json!({ "id": self.id, "content": self.text, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": normalized && !special, "special": special })
    }
}

/// All tokens of a file, no two of them the same; rows without one are left out.
#[derive(Debug)]
pub(crate) struct Vocabulary<'a> {
    /// In the order of their numbers.
    pub(crate) tokens: Vec<Token<'a>>,
    /// Places of texts among them.
    places: HashMap<Cow<'a, str>, usize>,
    /// Entries of the list, those without a token among them.
    pub(crate) entries: usize,
}

impl<'a> Vocabulary<'a> {
    /// Reads the tokens; `words` are BERT's.
    pub(crate) fn of(file: &Gguf<'a>, words: bool) -> Result<Self, GgufTokenizerError> {
        let key = "tokenizer.ggml.token_type";
        let texts = file.texts("tokenizer.ggml.tokens")?.ok_or(GgufTokenizerError::Absent)?;
        let kinds = file.wholes(key)?.ok_or(GgufTokenizerError::Absent)?;
        let entries = texts.len();
        if kinds.len() != entries {
            return Err(GgufTokenizerError::Lengths { key, count: kinds.len(), tokens: entries });
        }
        let entry = |((id, text), number): ((usize, &&'a str), i32)| {
            let what = || format!("is of the unknown kind {number}");
            let kind = Kind::of(number).ok_or_else(|| GgufTokenizerError::Token { token: id, what: what() })?;
            Ok((if words { word(text, kind) } else { Cow::Borrowed(*text) }, kind))
        };
        Self::new(texts.iter().enumerate().zip(kinds).map(entry))
    }

    /// Of entries by their numbers.
    pub(crate) fn new(
        entries: impl ExactSizeIterator<Item = Result<(Cow<'a, str>, Kind), GgufTokenizerError>>,
    ) -> Result<Self, GgufTokenizerError> {
        let (mut tokens, mut places, count) = (Vec::new(), HashMap::new(), entries.len());
        for (id, entry) in (0..).zip(entries) {
            let (text, kind) = entry?;
            let wrong = |what: String| GgufTokenizerError::Token { token: id as usize, what };
            if kind == Kind::Unused {
                continue;
            }
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
        Ok(Self { tokens, places, entries: count })
    }

    /// The token that a key names; none if the file lacks the key.
    pub(crate) fn named(&self, file: &Gguf<'_>, key: &'static str) -> Result<Option<&Token<'a>>, GgufTokenizerError> {
        let Some(id) = file.token(&format!("tokenizer.ggml.{key}"))? else { return Ok(None) };
        self.at(id).map(Some).ok_or(GgufTokenizerError::Special(key))
    }

    /// The token of a number.
    pub(crate) fn at(&self, id: u32) -> Option<&Token<'a>> {
        let found = self.tokens.binary_search_by_key(&id, |token| token.id).ok();
        found.and_then(|place| self.tokens.get(place))
    }

    /// The token of a text.
    pub(crate) fn get(&self, text: &str) -> Option<&Token<'a>> {
        self.tokens.get(*self.places.get(text)?)
    }

    /// Numbers by texts, as `tokenizer.json` has them.
    pub(crate) fn ids(&self) -> Map<String, Value> {
        self.tokens.iter().map(|token| (token.text.to_string(), token.id.into())).collect()
    }

    /// The tokens that are cut out of a text before anything else, as `tokenizer.json` has them.
    pub(crate) fn added(&self, normalized: bool) -> impl Iterator<Item = Value> {
        let added = |token: &&Token<'_>| matches!(token.kind, Kind::Control | Kind::UserDefined);
        self.tokens.iter().filter(added).map(move |token| token.added(normalized))
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
