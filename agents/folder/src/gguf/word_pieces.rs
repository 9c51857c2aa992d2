//! BERT's tokenizers: the longest pieces of each word, from its first on.

use serde_json::{Value, json};
use tensorlink_model::Gguf;

use super::vocabulary::{Kind, Token, Vocabulary};
use super::{GgufTokenizerError, Parts, template};

pub(super) fn tokenizer(file: &Gguf<'_>, vocabulary: &Vocabulary<'_>) -> Result<Value, GgufTokenizerError> {
    // The key is misspelled in the format.
    let first = special(file, vocabulary, ["cls_token_id", "bos_token_id"], "[CLS]")?;
    let last = special(file, vocabulary, ["seperator_token_id", "eos_token_id"], "[SEP]")?;
    let unknown = special(file, vocabulary, ["unknown_token_id"; 2], "[UNK]")?;
    let parts = Parts {
        normalizer: json!({
            "type": "BertNormalizer",
            "clean_text": true,
            "handle_chinese_chars": true,
            "strip_accents": null,
            "lowercase": !capitals(vocabulary),
        }),
        pre_tokenizer: json!({ "type": "BertPreTokenizer" }),
        post_processor: template(Some(first), Some(last)),
        decoder: json!({ "type": "WordPiece", "prefix": "##", "cleanup": true }),
        model: json!({
            "type": "WordPiece",
            "unk_token": unknown.text,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary.ids(),
        }),
    };
    Ok(parts.with(vocabulary.added(false)))
}

/// The token that one of two keys names, or that has a name of its own.
fn special<'v, 'a>(
    file: &Gguf<'_>,
    vocabulary: &'v Vocabulary<'a>,
    [key, other]: [&'static str; 2],
    text: &str,
) -> Result<&'v Token<'a>, GgufTokenizerError> {
    let named = match vocabulary.named(file, key)? {
        Some(token) => Some(token),
        None => vocabulary.named(file, other)?,
    };
    named.or_else(|| vocabulary.get(text)).ok_or(GgufTokenizerError::Special(key))
}

/// Whether words have capitals: the file does not say whether texts lose theirs, but then no word has any.
fn capitals(vocabulary: &Vocabulary<'_>) -> bool {
    let bracketed = |text: &str| text.starts_with('[') && text.ends_with(']');
    let words = vocabulary.tokens.iter().filter(|token| token.kind == Kind::Normal && !bracketed(&token.text));
    // Some capitals are symbols that have no small form.
    words.flat_map(|token| token.text.chars()).any(|letter| !letter.to_lowercase().eq([letter]))
}
