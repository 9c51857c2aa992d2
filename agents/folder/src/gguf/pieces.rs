//! Tokenizers of SentencePiece's kind, as Llama 2 has them: pieces of words, joined pair by pair, the best piece first.
//! As `transformers` turns them into byte pairs.

use std::cmp::Ordering;

use serde_json::{Value, json};
use tensorlink_model::{Gguf, GgufError};

use super::vocabulary::{Kind, Token, Vocabulary};
use super::{GgufTokenizerError, Parts, around};

/// What stands for a space.
pub(crate) const SPACE: &str = "\u{2581}";

pub(super) fn tokenizer(file: &Gguf<'_>, vocabulary: &Vocabulary<'_>) -> Result<Value, GgufTokenizerError> {
    plain(file)?;
    let prefix = file.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let replaced = json!({ "type": "Replace", "pattern": { "String": " " }, "content": SPACE });
    let before = prefix.then(|| json!({ "type": "Prepend", "prepend": SPACE }));
    let unknown = vocabulary.named(file, "unknown_token_id")?;
    let unknown = unknown.or_else(|| vocabulary.tokens.iter().find(|token| token.kind == Kind::Unknown));
    let key = "tokenizer.ggml.scores";
    let scores = file.numbers(key)?.ok_or(GgufTokenizerError::Absent)?;
    if scores.len() != vocabulary.entries {
        return Err(GgufTokenizerError::Lengths { key, count: scores.len(), tokens: vocabulary.entries });
    }
    let parts = Parts {
        normalizer: json!({
            "type": "Sequence",
            "normalizers": before.into_iter().chain([replaced]).collect::<Vec<_>>(),
        }),
        pre_tokenizer: Value::Null,
        post_processor: around(file, vocabulary, (true, false))?,
        decoder: decoder(prefix),
        model: pairs(vocabulary, unknown, &scores)?,
    };
    Ok(parts.with(vocabulary.added(false)))
}

/// Pieces as text again, without the space that was put before it.
pub(crate) fn decoder(prefix: bool) -> Value {
    let back = json!({ "type": "Replace", "pattern": { "String": SPACE }, "content": " " });
    let decoders = [back, json!({ "type": "ByteFallback" }), json!({ "type": "Fuse" })];
    let stripped = prefix.then(|| json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    json!({ "type": "Sequence", "decoders": decoders.into_iter().chain(stripped).collect::<Vec<_>>() })
}

/// Pieces that are joined pair by pair, by the scores of all entries.
pub(crate) fn pairs(
    vocabulary: &Vocabulary<'_>,
    unknown: Option<&Token<'_>>,
    scores: &[f32],
) -> Result<Value, GgufTokenizerError> {
    Ok(json!({
        "type": "BPE",
        "dropout": null,
        "unk_token": unknown.map(|token| &token.text),
        "continuing_subword_prefix": null,
        "end_of_word_suffix": null,
        "fuse_unk": true,
        "byte_fallback": vocabulary.tokens.iter().any(|token| token.kind == Kind::Byte),
        "ignore_merges": false,
        "vocab": vocabulary.ids(),
        "merges": merges(vocabulary, scores)?,
    }))
}

/// Refuses rules for characters and spaces, which Llama's have not.
fn plain(file: &Gguf<'_>) -> Result<(), GgufTokenizerError> {
    let unsupported = |key: &str, value: &str, supported: &str| GgufError::Unsupported {
        key: key.to_owned(),
        value: value.to_owned(),
        supported: supported.to_owned(),
    };
    let (spaces, characters) = ("tokenizer.ggml.remove_extra_whitespaces", "tokenizer.ggml.precompiled_charsmap");
    if file.flag(spaces)? == Some(true) {
        return Err(unsupported(spaces, "true", "false").into());
    }
    if file.has(characters) {
        return Err(unsupported(characters, "there", "a tokenizer without").into());
    }
    Ok(())
}

/// Every two pieces that are a piece together: of the best pieces first, and of one piece that of the longest
/// left part.
fn merges<'v>(vocabulary: &'v Vocabulary<'_>, scores: &[f32]) -> Result<Vec<[&'v str; 2]>, GgufTokenizerError> {
    let mut merges: Vec<(f32, usize, [&str; 2])> = Vec::new();
    for token in vocabulary.tokens.iter().filter(|token| token.kind == Kind::Normal) {
        let id = token.id as usize;
        let score = scores.get(id).copied().filter(|score| score.is_finite());
        let wrong = || GgufTokenizerError::Token { token: id, what: "has no score".to_owned() };
        let score = score.ok_or_else(wrong)?;
        let piece = |text: &str| vocabulary.get(text).is_some_and(|token| token.kind == Kind::Normal);
        let ends = token.text.char_indices().map(|(end, _)| end).enumerate().skip(1);
        for (characters, end) in ends {
            let (left, right) = token.text.split_at(end);
            if piece(left) && piece(right) {
                merges.push((score, characters, [left, right]));
            }
        }
    }
    // Stable: of equals, in the order of the vocabulary.
    merges.sort_by(|(a, left, _), (b, other, _)| b.partial_cmp(a).unwrap_or(Ordering::Equal).then(other.cmp(left)));
    Ok(merges.into_iter().map(|(.., pair)| pair).collect())
}
