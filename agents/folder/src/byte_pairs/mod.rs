//! The `tokenizer.json` of a folder that has lists of tokens and of pairs in its place, as older folders of GPT-2,
//! RoBERTa and Qwen have: what `transformers` makes of them.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use tensorlink_model::Family;
use tensorlink_model::family::{PAIRS, TOKENS};

use super::gguf::GgufTokenizerError;
use super::gguf::byte_pairs::{Cut, joined, merge};
use super::gguf::vocabulary::{Kind, Vocabulary};
use super::special::Special;

/// The special tokens that a family's tokenizer has even if the folder does not name them.
const fn own(family: Family) -> &'static [&'static str] {
    if family.tokenizer().fairseq { &["<s>", "</s>", "<pad>", "<unk>", "<mask>"] } else { &["<|endoftext|>"] }
}

/// `tokenizer.json` of the two files of a family.
///
/// # Errors
/// Which file cannot be used, and why, in words.
pub(super) fn tokenizer(
    tokens: &[u8],
    pairs: &[u8],
    family: Family,
    special: &Special,
) -> Result<Vec<u8>, (&'static str, String)> {
    let unusable = |file: &'static str| move |reason: String| (file, reason);
    let ids: BTreeMap<String, u32> =
        serde_json::from_slice(tokens).map_err(|error| unusable(TOKENS)(error.to_string()))?;
    let is_special = |text: &str| own(family).contains(&text) || special.named().any(|name| name == text);
    let vocabulary = vocabulary(&ids, is_special).map_err(unusable(TOKENS))?;
    let pairs = std::str::from_utf8(pairs).map_err(|error| unusable(PAIRS)(error.to_string()))?;
    let pairs = merges(&vocabulary, pairs).map_err(|error| unusable(PAIRS)(error.reason()))?;
    let beside = special.beside(&vocabulary);
    let fairseq = family.tokenizer().fairseq;
    let [first, last] = if fairseq { ["<s>", "</s>"] } else { ["<|endoftext|>"; 2] };
    let around = [first, last].map(|text| (fairseq, vocabulary.get(text)));
    let around = special.around((&vocabulary, &beside), around).map_err(unusable(TOKENS))?;
    let space = special.add_prefix_space.unwrap_or(false);
    let added = vocabulary.added(false).chain(beside.iter().map(|token| token.added(false)));
    let tokenizer = joined(Cut::of(family), &vocabulary, &pairs, (around, space)).with(added);
    serde_json::to_vec(&tokenizer).map_err(|error| unusable(TOKENS)(error.to_string()))
}

/// The pairs of a file, after a line that may tell its version.
fn merges<'t>(vocabulary: &Vocabulary<'_>, pairs: &'t str) -> Result<Vec<[&'t str; 2]>, GgufTokenizerError> {
    let is_none = |number: usize, line: &str| line.trim().is_empty() || (number == 0 && line.starts_with("#version"));
    let lines = pairs.lines().enumerate().filter(|(number, line)| !is_none(*number, line));
    lines.map(|(number, line)| merge(vocabulary, number, line)).collect()
}

/// The tokens by their numbers, of which no more than every second may be missing.
fn vocabulary(ids: &BTreeMap<String, u32>, special: impl Fn(&str) -> bool) -> Result<Vocabulary<'_>, String> {
    let count = ids.values().max().map_or(0, |most| *most as usize + 1);
    if count == 0 {
        return Err("it has no tokens".to_owned());
    }
    if count > 2 * ids.len() {
        return Err(format!("of {} tokens one has the number {}", ids.len(), count - 1));
    }
    let mut entries: Vec<(Cow<'_, str>, Kind)> = vec![("".into(), Kind::Unused); count];
    for (text, id) in ids {
        if let Some(entry) = entries.get_mut(*id as usize) {
            if entry.1 != Kind::Unused {
                return Err(format!("tokens {:?} and {text:?} have the number {id}", entry.0));
            }
            let kind = if special(text) { Kind::Control } else { Kind::Normal };
            *entry = (text.as_str().into(), kind);
        }
    }
    Vocabulary::new(entries.into_iter().map(Ok)).map_err(|error: GgufTokenizerError| error.reason())
}
