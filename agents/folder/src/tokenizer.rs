//! Text to tokens and back, by `tokenizer.json`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use tensorlink_model::Description;
use tokenizers::models::ModelWrapper;
use tokenizers::utils::truncation::truncate_encodings;
use tokenizers::{Encoding, PostProcessor, Tokenizer, TruncationParams, step_decode_stream};

use super::{TokenizerError, characters};

/// Most bytes of a text for each token of the context: far above any language, so that work stays bounded.
const BYTES_PER_TOKEN: usize = 256;

/// The tokenizer of a model.
#[derive(Clone, Debug)]
pub struct TextTokenizer {
    tokenizer: Tokenizer,
    tokens: usize,
    /// Tokens that were added to it and for which the model has no rows, as they are written.
    beyond: Vec<String>,
    vocabulary: u32,
    context: u32,
}

/// A `tokenizer.json` without some tokens that were added. A text that spells one out is a text.
fn without(tokens: &[String], json: &[u8]) -> Result<Vec<u8>, TokenizerError> {
    let syntax = |error: serde_json::Error| TokenizerError::Syntax(error.to_string());
    let mut tokenizer: Value = serde_json::from_slice(json).map_err(syntax)?;
    if let Some(added) = tokenizer.get_mut("added_tokens").and_then(Value::as_array_mut) {
        let content = |token: &Value| token.get("content").and_then(Value::as_str).map(str::to_owned);
        added.retain(|token| content(token).is_none_or(|content| !tokens.contains(&content)));
    }
    serde_json::to_vec(&tokenizer).map_err(syntax)
}

/// What the library makes of what it is given, or why not. It looks things up by names and numbers that a file says,
/// and panics where they are not there: that is an error of one folder or of one text.
fn made<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(made) => made.map_err(|error| error.to_string()),
        Err(_) => Err("the tokenizer library fails over it".to_owned()),
    }
}

/// What is known of a text whose tokens come one by one: the tokens that the next may change the spelling of, what they
/// are written as, and how many of them are written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spelling {
    ids: Vec<u32>,
    prefix: String,
    prefix_index: usize,
}

impl TextTokenizer {
    /// Reads `tokenizer.json`, turns off its padding, truncation and dropout, which are for training, and checks that
    /// it fits the model. Tokens that were added to it and that the model has no rows for are left out: it can neither
    /// read nor write them. Padding is often added so, and every Gemma 3 has a token for images.
    ///
    /// # Errors
    /// [`TokenizerError::Syntax`], [`TokenizerError::Vocabulary`], [`TokenizerError::Special`].
    pub fn new(json: &[u8], description: &Description) -> Result<Self, TokenizerError> {
        characters::check(json).map_err(TokenizerError::Syntax)?;
        let read = |json: &[u8]| made(|| Tokenizer::from_bytes(json)).map_err(TokenizerError::Syntax);
        let mut tokenizer = read(json)?;
        let vocabulary = description.architecture.vocabulary;
        let mut added: Vec<_> = tokenizer.get_added_tokens_decoder().into_iter().collect();
        added.sort_unstable_by_key(|(token, _)| *token);
        added.retain(|(token, _)| *token >= vocabulary);
        let beyond: Vec<String> = added.into_iter().map(|(_, added)| added.content).collect();
        if !beyond.is_empty() {
            tokenizer = read(&without(&beyond, json)?)?;
        }
        tokenizer.with_padding(None);
        made(|| tokenizer.with_truncation(None).map(drop)).map_err(TokenizerError::Syntax)?;
        if let ModelWrapper::BPE(pairs) = tokenizer.get_model()
            && pairs.dropout.is_some()
        {
            let mut pairs = pairs.clone();
            pairs.dropout = None;
            tokenizer.with_model(pairs);
        }
        let known = tokenizer.get_vocab(true);
        match known.values().max() {
            Some(&token) if token >= vocabulary => return Err(TokenizerError::Vocabulary { token, vocabulary }),
            Some(_) => {}
            None => return Err(TokenizerError::Syntax("it has no tokens".into())),
        }
        for second in [None, Some(Encoding::default())] {
            let around = made(|| tokenizer.post_process(Encoding::default(), second, true));
            let around = around.map_err(TokenizerError::Syntax)?;
            if let Some(&token) = around.get_ids().iter().find(|token| **token >= vocabulary) {
                return Err(TokenizerError::Vocabulary { token, vocabulary });
            }
        }
        let mut special = description.beginning.iter().chain(&description.ends);
        if let Some(&token) = special.find(|token| tokenizer.id_to_token(**token).is_none()) {
            return Err(TokenizerError::Special { token });
        }
        Ok(Self { tokenizer, tokens: known.len(), beyond, vocabulary, context: description.architecture.context })
    }

    /// Tokens it knows; a model may have rows for more.
    pub const fn len(&self) -> usize {
        self.tokens
    }

    /// Whether it knows none; never so.
    pub const fn is_empty(&self) -> bool {
        self.tokens == 0
    }

    /// Tokens of its file that the model has no rows for, as they are written, in order of their numbers.
    pub fn beyond(&self) -> &[String] {
        &self.beyond
    }

    /// The tokens of a text, with the special tokens that the tokenizer puts around it: 1 to `context`.
    ///
    /// # Errors
    /// [`TokenizerError::Empty`], [`TokenizerError::Context`], [`TokenizerError::Bytes`], [`TokenizerError::Text`].
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        self.counted(self.encoding(text, true)?.get_ids())
    }

    /// As [`encode`](Self::encode), for a text that goes on: without the tokens of `ends` that the tokenizer puts
    /// after it.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_beginning(&self, text: &str, ends: &[u32]) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self.encoding(text, true)?;
        let added = encoding.get_ids().iter().zip(encoding.get_special_tokens_mask()).rev();
        let closing = added.take_while(|(id, special)| **special == 1 && ends.contains(id)).count();
        let ids = encoding.get_ids();
        self.counted(ids.get(..ids.len().saturating_sub(closing)).unwrap_or_default())
    }

    /// As [`encode`](Self::encode), with no special tokens but those that the text spells out, as chat templates do.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_bare(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        self.counted(self.encoding(text, false)?.get_ids())
    }

    /// All tokens of a text that is learnt from, however long, without special tokens.
    ///
    /// # Errors
    /// [`TokenizerError::Text`].
    pub fn encode_all(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        Ok(self.fast(text, false)?.get_ids().to_vec())
    }

    /// As [`encode`](Self::encode), for a text that a model is calibrated or measured on: cut to the context.
    ///
    /// # Errors
    /// [`TokenizerError::Empty`], [`TokenizerError::Text`].
    pub fn encode_within(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        self.counted(&self.encode_cut(text, self.context as usize)?)
    }

    /// As [`encode`](Self::encode), for a text of which so many tokens are read. Of one that is far longer, no more is
    /// looked at than may become these.
    ///
    /// # Errors
    /// [`TokenizerError::Empty`], [`TokenizerError::Text`].
    pub fn encode_read(&self, text: &str, most: usize) -> Result<Vec<u32>, TokenizerError> {
        self.counted(&self.encode_cut(self.readable(text), most)?)
    }

    /// Most tokens of a text.
    pub const fn context(&self) -> u32 {
        self.context
    }

    /// As [`encode`](Self::encode), for a text that is learnt from: what is longer than so many tokens is cut, before
    /// the special ones at its end.
    ///
    /// # Errors
    /// [`TokenizerError::Text`].
    pub fn encode_cut(&self, text: &str, most: usize) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self.fast(text, true)?;
        let ids = encoding.get_ids();
        if ids.len() <= most {
            return Ok(ids.to_vec());
        }
        let end =
            encoding.get_special_tokens_mask().iter().rev().take_while(|special| **special == 1).count().min(most);
        let (kept, closing) = (most.saturating_sub(end), ids.len().saturating_sub(end));
        Ok(ids.iter().take(kept).chain(ids.iter().skip(closing)).copied().collect())
    }

    /// The tokens of two texts with the special tokens that the tokenizer puts around them, each with the number of its
    /// text, 0 or 1. They are at most so many: what is too long of the longer text is cut, at its end.
    ///
    /// # Errors
    /// [`TokenizerError::Text`]; [`TokenizerError::Context`] if the special tokens alone are more.
    pub fn encode_pair(&self, texts: (&str, &str), most: usize) -> Result<Vec<(u32, u32)>, TokenizerError> {
        let [first, second] = [texts.0, texts.1].map(|text| self.fast(self.readable(text), false));
        let around = self.tokenizer.get_post_processor().map_or(0, |processor| processor.added_tokens(true));
        let Some(most) = most.checked_sub(around) else {
            return Err(TokenizerError::Context { tokens: around, context: self.context });
        };
        let params = TruncationParams { max_length: most, ..TruncationParams::default() };
        let (first, second) = (first?, second?);
        let whole = made(|| {
            let (first, second) = truncate_encodings(first, Some(second), &params)?;
            self.tokenizer.post_process(first, second, true)
        });
        let whole = whole.map_err(TokenizerError::Text)?;
        Ok(whole.get_ids().iter().copied().zip(whole.get_type_ids().iter().copied()).collect())
    }

    /// As much of a text as may become tokens within the context.
    fn readable<'t>(&self, text: &'t str) -> &'t str {
        let end = text.floor_char_boundary(BYTES_PER_TOKEN.saturating_mul(self.context as usize));
        text.get(..end).unwrap_or_default()
    }

    fn encoding(&self, text: &str, special: bool) -> Result<Encoding, TokenizerError> {
        let context = self.context;
        let most = BYTES_PER_TOKEN.saturating_mul(context as usize);
        if text.len() > most {
            return Err(TokenizerError::Bytes { bytes: text.len(), most, context });
        }
        self.fast(text, special)
    }

    fn fast(&self, text: &str, special: bool) -> Result<Encoding, TokenizerError> {
        let fast = |text: &str, special: bool| made(|| self.tokenizer.encode_fast(text, special));
        fast(text, special).map_err(|error| {
            // A vocabulary of characters has no token for others, and the tokenizer does not say which.
            let unknown = |c: &char| fast(c.encode_utf8(&mut [0; 4]), false).is_err();
            text.chars().find(unknown).map_or_else(|| TokenizerError::Text(error), TokenizerError::Character)
        })
    }

    fn counted(&self, ids: &[u32]) -> Result<Vec<u32>, TokenizerError> {
        let context = self.context;
        match ids {
            [] => Err(TokenizerError::Empty),
            ids if ids.len() > context as usize => Err(TokenizerError::Context { tokens: ids.len(), context }),
            ids => Ok(ids.to_vec()),
        }
    }

    /// The text of tokens, without special tokens. Rows of the model that the tokenizer does not know give nothing.
    ///
    /// # Errors
    /// [`TokenizerError::Token`] for a number that is no token of the model, [`TokenizerError::Text`].
    pub fn decode(&self, tokens: &[u32]) -> Result<String, TokenizerError> {
        let vocabulary = self.vocabulary;
        if let Some(&token) = tokens.iter().find(|token| **token >= vocabulary) {
            return Err(TokenizerError::Token { token, vocabulary });
        }
        made(|| self.tokenizer.decode(tokens, true)).map_err(TokenizerError::Text)
    }

    /// Begins to spell a text whose tokens come one by one, after these: how the first are written may depend on them.
    pub fn spelling(&self, before: &[u32]) -> Spelling {
        // Incomplete characters before would become part of what follows.
        let whole = |text: &String| !text.ends_with(char::REPLACEMENT_CHARACTER);
        match self.decode(before).ok().filter(whole) {
            Some(prefix) => Spelling { ids: before.to_vec(), prefix, prefix_index: before.len() },
            None => Spelling::default(),
        }
    }

    /// What one more token adds to the text; nothing while it leaves a character incomplete.
    ///
    /// # Errors
    /// [`TokenizerError::Text`].
    pub fn spell(
        &self,
        token: u32,
        Spelling { ids, prefix, prefix_index }: &mut Spelling,
    ) -> Result<String, TokenizerError> {
        let added = made(|| step_decode_stream(&self.tokenizer, vec![token], true, ids, prefix, prefix_index));
        Ok(added.map_err(TokenizerError::Text)?.unwrap_or_default())
    }

    /// What is left to be written when no more tokens come: an incomplete character.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn spell_rest(&self, spelling: &Spelling) -> Result<String, TokenizerError> {
        let text = self.decode(&spelling.ids)?;
        Ok(text.get(spelling.prefix.len()..).unwrap_or_default().to_owned())
    }

    /// The tokenizer itself.
    pub const fn inner(&self) -> &Tokenizer {
        &self.tokenizer
    }
}
