//! The `tokenizer.json` of a folder that has SentencePiece's file in its place, as folders of Llama 2, Mistral, Gemma
//! and XLM-RoBERTa have. It is Google's `sentencepiece_model.proto`; texts are read as the library reads them, but that
//! special tokens may be spelled out, as `transformers` has it.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use prost::Message;
use serde::Deserialize;
use serde_json::{Value, json};
use tensorlink_graph::transformer::Family;

use super::characters;
use super::gguf::pieces::{SPACE, decoder, pairs};
use super::gguf::vocabulary::{Kind, Token, Vocabulary};
use super::gguf::{GgufTokenizerError, Parts, template};

/// Score of what no text means: below that of any piece, so that the likeliest pieces of a text have none of it.
const LEAST: f32 = -1e6;
/// Pieces that XLM-RoBERTa has in place of the first of its file, and that after the last.
const FAIRSEQ: [(&str, Kind); 4] =
    [("<s>", Kind::Control), ("<pad>", Kind::Control), ("</s>", Kind::Control), ("<unk>", Kind::Unknown)];
const MASK: &str = "<mask>";

/// The file that folders of a family have.
pub(super) const fn file(family: Family) -> Option<&'static str> {
    match family {
        Family::Llama | Family::Mistral | Family::Gemma3 => Some("tokenizer.model"),
        Family::Roberta => Some("sentencepiece.bpe.model"),
        Family::Bert | Family::Gpt2 | Family::Qwen2 | Family::Qwen3 => None,
    }
}

/// What of `tokenizer_config.json` matters here.
#[derive(Deserialize, Default)]
pub(super) struct Config {
    bos_token: Option<Special>,
    eos_token: Option<Special>,
    add_bos_token: Option<bool>,
    add_eos_token: Option<bool>,
    legacy: Option<bool>,
    #[serde(default)]
    added_tokens_decoder: BTreeMap<u32, Added>,
}

/// Where older folders have the tokens beside those of the file: numbers by texts.
pub(super) const ADDED: &str = "added_tokens.json";

impl Config {
    /// With tokens of [`ADDED`]; what `tokenizer_config.json` says of a number counts more.
    pub(super) fn with(mut self, added: BTreeMap<String, u32>) -> Self {
        for (content, id) in added {
            self.added_tokens_decoder.entry(id).or_insert(Added { content, special: false });
        }
        self
    }
}

/// A token by its text, or by more.
#[derive(Deserialize)]
#[serde(untagged)]
enum Special {
    Text(String),
    Token { content: String },
}

/// A token beside those of the file.
#[derive(Deserialize)]
struct Added {
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Message)]
struct Model {
    #[prost(message, repeated, tag = "1")]
    pieces: Vec<Piece>,
    #[prost(message, optional, tag = "2")]
    training: Option<Training>,
    #[prost(message, optional, tag = "3")]
    rules: Option<Rules>,
}

#[derive(Message)]
struct Piece {
    #[prost(string, optional, tag = "1")]
    piece: Option<String>,
    #[prost(float, optional, tag = "2")]
    score: Option<f32>,
    #[prost(int32, optional, tag = "3", default = "1")]
    kind: Option<i32>,
}

#[derive(Message)]
struct Training {
    #[prost(int32, optional, tag = "3", default = "1")]
    model: Option<i32>,
    #[prost(bool, optional, tag = "24")]
    space_after: Option<bool>,
    #[prost(int32, optional, tag = "41", default = "1")]
    first: Option<i32>,
    #[prost(int32, optional, tag = "42", default = "2")]
    last: Option<i32>,
}

/// How characters and spaces are read.
#[derive(Message)]
struct Rules {
    #[prost(bytes = "vec", optional, tag = "2")]
    characters: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "3", default = "true")]
    prefix: Option<bool>,
    #[prost(bool, optional, tag = "4", default = "true")]
    fewer_spaces: Option<bool>,
    #[prost(bool, optional, tag = "5", default = "true")]
    escaped: Option<bool>,
}

/// `tokenizer.json` of the file of a family.
///
/// # Errors
/// Why there is none, in words.
pub(super) fn tokenizer(bytes: &[u8], family: Family, config: &Config) -> Result<Vec<u8>, String> {
    let model = Model::decode(bytes).map_err(|error| error.to_string())?;
    let training = model.training.unwrap_or_default();
    let rules = model.rules.unwrap_or_default();
    if training.space_after() || !rules.escaped() {
        return Err("it writes spaces in a way that is not read".to_owned());
    }
    if !rules.characters().is_empty() {
        characters::sound(rules.characters()).map_err(|reason| format!("its table of characters {reason}"))?;
    }
    // A space put before each part would be put before the tokens that are looked for as well.
    let raw = each_part(&rules, config);
    let (entries, scores) = entries(&model.pieces, family, raw)?;
    let vocabulary = Vocabulary::new(entries.into_iter().map(Ok)).map_err(told)?;
    let unknown = vocabulary.tokens.iter().find(|token| token.kind == Kind::Unknown);
    let unknown = unknown.ok_or("it has no token for what is unknown")?;
    let model = match training.model() {
        1 => unigram(&vocabulary, unknown, &scores),
        2 => pairs(&vocabulary, Some(unknown), &scores).map_err(told)?,
        kind => return Err(format!("its model is of type {kind}; 1 (unigram) and 2 (pairs) are read")),
    };
    let new: Vec<Token<'_>> = config.added_tokens_decoder.iter().filter_map(|token| new(&vocabulary, token)).collect();
    let Around { first, last } = Around::of((&vocabulary, &new), &training, family, config)?;
    let parts = Parts {
        normalizer: normalizer(&rules, config),
        pre_tokenizer: pre_tokenizer(&rules, config),
        post_processor: template(first, last),
        decoder: decoder(rules.prefix()),
        model,
    };
    let mut tokenizer = parts.with(&vocabulary);
    if let Some(added) = tokenizer.get_mut("added_tokens").and_then(Value::as_array_mut) {
        for token in added.iter_mut().filter(|token| token.get("special") == Some(&false.into())) {
            if let Some(normalized) = token.get_mut("normalized") {
                *normalized = (!raw).into();
            }
        }
        added.extend(new.iter().map(Token::added));
    }
    serde_json::to_vec(&tokenizer).map_err(|error| error.to_string())
}

/// A token beside those of the file, if it is one.
fn new<'t>(vocabulary: &Vocabulary<'_>, (id, added): (&u32, &'t Added)) -> Option<Token<'t>> {
    let kind = if added.special { Kind::Control } else { Kind::UserDefined };
    let token = || Token { id: *id, text: added.content.as_str().into(), kind };
    vocabulary.at(*id).is_none().then(token)
}

/// What is wrong with a token, as a GGUF file is told it, without what to do about the file.
fn told(error: GgufTokenizerError) -> String {
    match error {
        GgufTokenizerError::Token { token, what } => format!("token {token} {what}"),
        other => other.to_string(),
    }
}

/// Tokens by their numbers, and their scores.
type Entries<'a> = (Vec<(Cow<'a, str>, Kind)>, Vec<f32>);

fn entries(pieces: &[Piece], family: Family, raw: bool) -> Result<Entries<'_>, String> {
    let (mut entries, mut scores) = (Vec::new(), Vec::new());
    let fairseq = family == Family::Roberta;
    if fairseq {
        entries.extend(FAIRSEQ.map(|(text, kind)| (Cow::Borrowed(text), kind)));
        scores.extend([LEAST; FAIRSEQ.len()]);
    }
    // Of XLM-RoBERTa's file the first three are <unk>, <s> and </s>, which have other numbers in the model.
    let first = if fairseq { FAIRSEQ.len().saturating_sub(1) } else { 0 };
    for (id, piece) in pieces.iter().enumerate().skip(first) {
        let kind =
            Kind::of(piece.kind()).ok_or_else(|| format!("piece {id} is of the unknown kind {}", piece.kind()))?;
        let text = match kind {
            // It is looked for before spaces are escaped.
            Kind::UserDefined if raw => piece.piece().replace(SPACE, " ").into(),
            _ => piece.piece().into(),
        };
        entries.push((text, kind));
        scores.push(if kind == Kind::Normal { piece.score() } else { LEAST });
    }
    if fairseq {
        entries.push((MASK.into(), Kind::Control));
        scores.push(LEAST);
    }
    Ok((entries, scores))
}

/// The tokens that are put around a text.
struct Around<'v, 't> {
    first: Option<&'v Token<'t>>,
    last: Option<&'v Token<'t>>,
}

impl<'v, 't> Around<'v, 't> {
    fn of(
        (vocabulary, new): (&'v Vocabulary<'t>, &'v [Token<'t>]),
        training: &Training,
        family: Family,
        config: &Config,
    ) -> Result<Self, String> {
        let fairseq = family == Family::Roberta;
        let token = |wanted: bool, named: &Option<Special>, own: i32, name: &str| {
            if !wanted {
                return Ok(None);
            }
            let found = match named {
                Some(Special::Text(text) | Special::Token { content: text }) => {
                    vocabulary.get(text).or_else(|| new.iter().find(|token| token.text == text.as_str()))
                }
                None if fairseq => vocabulary.get(name),
                None => u32::try_from(own).ok().and_then(|id| vocabulary.at(id)),
            };
            found.map(Some).ok_or_else(|| format!("it lacks the token that {name} is to stand for"))
        };
        Ok(Self {
            first: token(config.add_bos_token.unwrap_or(true), &config.bos_token, training.first(), "<s>")?,
            last: token(config.add_eos_token.unwrap_or(fairseq), &config.eos_token, training.last(), "</s>")?,
        })
    }
}

/// The pieces of a text that are the likeliest together.
fn unigram(vocabulary: &Vocabulary<'_>, unknown: &Token<'_>, scores: &[f32]) -> Value {
    // Every number has an entry, rows without a token as well.
    let entry = |(id, score): (u32, &f32)| {
        let text = vocabulary.at(id).map_or_else(|| format!("<unused {id}>").into(), |token| token.text.clone());
        json!([text, if score.is_finite() { *score } else { LEAST }])
    };
    json!({
        "type": "Unigram",
        "unk_id": unknown.id,
        "vocab": (0..).zip(scores).map(entry).collect::<Vec<_>>(),
        "byte_fallback": vocabulary.tokens.iter().any(|token| token.kind == Kind::Byte),
    })
}

/// Whether each part of a text between special tokens begins with a space, as `transformers` first had it for Llama.
fn each_part(rules: &Rules, config: &Config) -> bool {
    rules.prefix() && config.legacy != Some(false)
}

fn normalizer(rules: &Rules, config: &Config) -> Value {
    let replaced = |pattern: Value, content: &str| json!({ "type": "Replace", "pattern": pattern, "content": content });
    let characters = rules.characters().to_vec();
    let characters = (!characters.is_empty())
        .then(|| json!({ "type": "Precompiled", "precompiled_charsmap": BASE64_STANDARD.encode(&characters) }));
    let fewer = rules.fewer_spaces().then(|| {
        [("^ +| +$", ""), (" {2,}", " ")].map(|(pattern, content)| replaced(json!({ "Regex": pattern }), content))
    });
    let prefix = each_part(rules, config).then(|| json!({ "type": "Prepend", "prepend": SPACE }));
    let escaped = replaced(json!({ "String": " " }), SPACE);
    let all = characters.into_iter().chain(fewer.into_iter().flatten()).chain(prefix).chain([escaped]);
    json!({ "type": "Sequence", "normalizers": all.collect::<Vec<_>>() })
}

fn pre_tokenizer(rules: &Rules, config: &Config) -> Value {
    if rules.prefix() && !each_part(rules, config) {
        json!({ "type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": false })
    } else {
        Value::Null
    }
}
