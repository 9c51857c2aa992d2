//! The `tokenizer.json` of a folder that has SentencePiece's file in its place, as folders of Llama 2, Mistral, Gemma
//! and XLM-RoBERTa have. It is Google's `sentencepiece_model.proto`; texts are read as the library reads them, but that
//! special tokens may be spelled out, as `transformers` has it.

#[cfg(test)]
pub(super) mod tests;

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use prost::Message;
use serde_json::{Value, json};
use tensorlink_model::Family;

use super::characters;
use super::gguf::Parts;
use super::gguf::pieces::{SPACE, decoder, pairs};
use super::gguf::vocabulary::{Kind, Token, Vocabulary};
use super::special::Special;

/// Score of what no text means: below that of any piece, so that the likeliest pieces of a text have none of it.
const LEAST: f32 = -1e6;
/// Pieces that XLM-RoBERTa has in place of the first of its file, and that after the last.
const FAIRSEQ: [(&str, Kind); 4] =
    [("<s>", Kind::Control), ("<pad>", Kind::Control), ("</s>", Kind::Control), ("<unk>", Kind::Unknown)];
const MASK: &str = "<mask>";

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
pub(super) fn tokenizer(bytes: &[u8], family: Family, special: &Special) -> Result<Vec<u8>, String> {
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
    let raw = each_part(&rules, special);
    let (entries, scores) = entries(&model.pieces, family, raw)?;
    let vocabulary = Vocabulary::new(entries.into_iter().map(Ok)).map_err(|error| error.reason())?;
    let unknown = vocabulary.tokens.iter().find(|token| token.kind == Kind::Unknown);
    let unknown = unknown.ok_or("it has no token for what is unknown")?;
    let model = match training.model() {
        1 => unigram(&vocabulary, unknown, &scores),
        2 => pairs(&vocabulary, Some(unknown), &scores).map_err(|error| error.reason())?,
        kind => return Err(format!("its model is of type {kind}; 1 (unigram) and 2 (pairs) are read")),
    };
    let beside = special.beside(&vocabulary);
    let fairseq = family.tokenizer().fairseq;
    let own = |name: &str, id: i32| {
        if fairseq { vocabulary.get(name) } else { u32::try_from(id).ok().and_then(|id| vocabulary.at(id)) }
    };
    let around = [(true, own("<s>", training.first())), (fairseq, own("</s>", training.last()))];
    let around = special.around((&vocabulary, &beside), around)?;
    let parts = Parts {
        normalizer: normalizer(&rules, special),
        pre_tokenizer: pre_tokenizer(&rules, special),
        post_processor: around,
        decoder: decoder(rules.prefix()),
        model,
    };
    let added = vocabulary.added(!raw).chain(beside.iter().map(|token| token.added(false)));
    serde_json::to_vec(&parts.with(added)).map_err(|error| error.to_string())
}

/// Tokens by their numbers, and their scores.
type Entries<'a> = (Vec<(Cow<'a, str>, Kind)>, Vec<f32>);

fn entries(pieces: &[Piece], family: Family, raw: bool) -> Result<Entries<'_>, String> {
    let (mut entries, mut scores) = (Vec::new(), Vec::new());
    let fairseq = family.tokenizer().fairseq;
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
fn each_part(rules: &Rules, special: &Special) -> bool {
    rules.prefix() && special.legacy != Some(false)
}

fn normalizer(rules: &Rules, special: &Special) -> Value {
    let replaced = |pattern: Value, content: &str| json!({ "type": "Replace", "pattern": pattern, "content": content });
    let characters = rules.characters().to_vec();
    let characters = (!characters.is_empty())
        .then(|| json!({ "type": "Precompiled", "precompiled_charsmap": BASE64_STANDARD.encode(&characters) }));
    let fewer = rules.fewer_spaces().then(|| {
        [("^ +| +$", ""), (" {2,}", " ")].map(|(pattern, content)| replaced(json!({ "Regex": pattern }), content))
    });
    let prefix = each_part(rules, special).then(|| json!({ "type": "Prepend", "prepend": SPACE }));
    let escaped = replaced(json!({ "String": " " }), SPACE);
    let all = characters.into_iter().chain(fewer.into_iter().flatten()).chain(prefix).chain([escaped]);
    json!({ "type": "Sequence", "normalizers": all.collect::<Vec<_>>() })
}

fn pre_tokenizer(rules: &Rules, special: &Special) -> Value {
    if rules.prefix() && !each_part(rules, special) {
        json!({ "type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": false })
    } else {
        Value::Null
    }
}
