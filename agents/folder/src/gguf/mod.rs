//! A GGUF file in the words of a model folder: the small files that would say the same. Whoever reads a folder, or
//! writes a new one of a model, goes on from these.
//!
//! | module | what lives there |
//! |---|---|
//! | here | which files there are |
//! | `vocabulary` | the tokens, and what kind each is of |
//! | `byte_pairs`, `pieces`, `word_pieces` | tokenizers of GPT-2's kind, SentencePiece's and BERT's |
//! | `error` | why a tokenizer is refused |

pub(super) mod byte_pairs;
mod error;
pub(super) mod pieces;
#[cfg(test)]
mod tests;
pub(super) mod vocabulary;
mod word_pieces;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tensorlink_model::{Gguf, export, gguf};

use self::vocabulary::Vocabulary;
use super::{FolderError, POOLING, TokenizerError};

pub use error::GgufTokenizerError;

/// Every small file that a GGUF file stands for, by the name that it has in a folder.
///
/// # Errors
/// [`FolderError::Gguf`], [`FolderError::Tokenizer`].
pub(super) fn files(bytes: &[u8]) -> Result<BTreeMap<&'static str, Vec<u8>>, FolderError> {
    let file = Gguf::parse(bytes)?;
    let config = gguf::config(&file)?;
    let (tokenizer, names) = tokenizer(&file).map_err(TokenizerError::from)?;
    let mut files = BTreeMap::from([
        ("config.json", export::json(&config)?),
        ("tokenizer.json", export::json(&tokenizer)?),
        ("tokenizer_config.json", export::json(&names)?),
    ]);
    if let Some(pooling) = gguf::pooling(&file)? {
        files.insert(POOLING, export::json(&pooling)?);
    }
    Ok(files)
}

/// `tokenizer.json` and `tokenizer_config.json`.
fn tokenizer(file: &Gguf<'_>) -> Result<(Value, Map<String, Value>), GgufTokenizerError> {
    let model = file.text("tokenizer.ggml.model")?.ok_or(GgufTokenizerError::Absent)?;
    let vocabulary = Vocabulary::of(file, model == "bert")?;
    let tokenizer = match model {
        "gpt2" => byte_pairs::tokenizer(file, &vocabulary)?,
        "llama" => pieces::tokenizer(file, &vocabulary)?,
        "bert" => word_pieces::tokenizer(file, &vocabulary)?,
        other => return Err(GgufTokenizerError::Model(other.to_owned())),
    };
    let mut names = Map::from_iter([("tokenizer_class".to_owned(), "PreTrainedTokenizerFast".into())]);
    for (name, key) in [
        ("bos_token", "bos_token_id"),
        ("eos_token", "eos_token_id"),
        ("unk_token", "unknown_token_id"),
        ("pad_token", "padding_token_id"),
    ] {
        if let Some(token) = vocabulary.named(file, key)? {
            names.insert(name.to_owned(), token.text.as_ref().into());
        }
    }
    if let Some(template) = file.text("tokenizer.chat_template")? {
        names.insert("chat_template".to_owned(), template.into());
    }
    Ok((tokenizer, names))
}

/// The parts of a `tokenizer.json`.
pub(super) struct Parts {
    pub(super) normalizer: Value,
    pub(super) pre_tokenizer: Value,
    pub(super) post_processor: Value,
    pub(super) decoder: Value,
    pub(super) model: Value,
}

impl Parts {
    /// All of it, with the tokens that are cut out of a text before anything else.
    pub(super) fn with(self, added: impl Iterator<Item = Value>) -> Value {
        let Self { normalizer, pre_tokenizer, post_processor, decoder, model } = self;
        json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": added.collect::<Vec<_>>(),
            "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": post_processor,
            "decoder": decoder,
            "model": model,
        })
    }
}

/// Puts the tokens around a text that the file says, or else these.
fn around(
    file: &Gguf<'_>,
    vocabulary: &Vocabulary<'_>,
    (first, last): (bool, bool),
) -> Result<Value, GgufTokenizerError> {
    let token = |flag: &str, default: bool, key: &'static str| {
        if !file.flag(&format!("tokenizer.ggml.{flag}"))?.unwrap_or(default) {
            return Ok(None);
        }
        vocabulary.named(file, key)?.map(Some).ok_or(GgufTokenizerError::Special(key))
    };
    let first = token("add_bos_token", first, "bos_token_id")?;
    let last = token("add_eos_token", last, "eos_token_id")?;
    Ok(template(first, last))
}

/// A post-processor that puts tokens around a text, or none.
pub(super) fn template(first: Option<&vocabulary::Token<'_>>, last: Option<&vocabulary::Token<'_>>) -> Value {
    if first.is_none() && last.is_none() {
        return Value::Null;
    }
    let special =
        |token: &vocabulary::Token<'_>, text: u8| json!({ "SpecialToken": { "id": token.text, "type_id": text } });
    let sequence = |name: &str, text: u8| json!({ "Sequence": { "id": name, "type_id": text } });
    let whole = |name: &str, text: u8| {
        let (first, last) = (first.map(|token| special(token, text)), last.map(|token| special(token, text)));
        first.into_iter().chain([sequence(name, text)]).chain(last).collect::<Vec<_>>()
    };
    let tokens = first
        .into_iter()
        .chain(last)
        .map(|token| (token.text.to_string(), json!({ "id": token.text, "ids": [token.id], "tokens": [token.text] })));
    let pair = [whole("A", 0), whole("B", 1)].concat();
    json!({
        "type": "TemplateProcessing",
        "single": whole("A", 0),
        "pair": pair,
        "special_tokens": tokens.collect::<Map<_, _>>(),
    })
}
