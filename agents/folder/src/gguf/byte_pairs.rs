//! Tokenizers of GPT-2's kind: bytes, joined pair by pair within what a regular expression cuts a text into.

use serde_json::{Value, json};
use tensorlink_model::{Family, Gguf};

use super::vocabulary::Vocabulary;
use super::{GgufTokenizerError, Parts, around};

/// GPT-2's expression, without spaces at the end, which llama.cpp has where it lets others go first.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)";
/// Llama 3's.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Qwen 2's: as Llama 3's, digit by digit.
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// How texts are cut.
pub(crate) struct Cut {
    /// The name in the file.
    name: &'static str,
    /// What is done before bytes are joined, one after the other.
    steps: fn(bool) -> Vec<Value>,
    /// Whether characters are composed first (NFC).
    composed: bool,
    /// Whether what is a token as a whole is taken as one, whatever its pairs.
    whole: bool,
    /// Whether a text begins with a token, where the file does not say.
    begins: bool,
}

static CUTS: [Cut; 6] = [
    Cut { name: "gpt-2", steps: gpt2, composed: false, whole: false, begins: false },
    Cut { name: "smollm", steps: digits, composed: false, whole: false, begins: false },
    Cut { name: "refact", steps: digits, composed: false, whole: false, begins: false },
    Cut { name: "llama-bpe", steps: llama3, composed: false, whole: true, begins: true },
    Cut { name: "qwen2", steps: qwen2, composed: true, whole: false, begins: false },
    Cut { name: "default", steps: default, composed: false, whole: false, begins: false },
];

impl Cut {
    fn named(name: &str) -> Option<&'static Self> {
        CUTS.iter().find(|cut| cut.name == name)
    }

    /// As a family's own tokenizer has it.
    pub(crate) fn of(family: Family) -> &'static Self {
        Self::named(family.tokenizer().cut).unwrap_or(&CUTS[0])
    }
}

/// All names, for messages.
pub(super) fn known() -> String {
    CUTS.each_ref().map(|cut| cut.name).join(", ")
}

/// Bytes as the characters that stand for them; `cut` says whether by GPT-2's expression first, `space` whether a text
/// gets a space before it.
fn bytes(cut: bool, space: bool) -> Value {
    json!({ "type": "ByteLevel", "add_prefix_space": space, "trim_offsets": true, "use_regex": cut })
}

fn split(expression: &str) -> Value {
    json!({ "type": "Split", "pattern": { "Regex": expression }, "behavior": "Isolated", "invert": false })
}

fn gpt2(space: bool) -> Vec<Value> {
    vec![bytes(true, space)]
}

fn digits(space: bool) -> Vec<Value> {
    vec![json!({ "type": "Digits", "individual_digits": true }), bytes(true, space)]
}

fn llama3(space: bool) -> Vec<Value> {
    vec![split(LLAMA3), bytes(false, space)]
}

fn qwen2(space: bool) -> Vec<Value> {
    vec![split(QWEN2), bytes(false, space)]
}

/// As llama.cpp has it for vocabularies that it knows no better of.
fn default(space: bool) -> Vec<Value> {
    [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]
        .map(split)
        .into_iter()
        .chain([bytes(false, space)])
        .collect()
}

pub(super) fn tokenizer(file: &Gguf<'_>, vocabulary: &Vocabulary<'_>) -> Result<Value, GgufTokenizerError> {
    let name = file.text("tokenizer.ggml.pre")?.ok_or(GgufTokenizerError::Uncut)?;
    let unknown = || GgufTokenizerError::Pre { name: name.to_owned() };
    let cut = Cut::named(name).ok_or_else(unknown)?;
    let merges = file.texts("tokenizer.ggml.merges")?.ok_or(GgufTokenizerError::Absent)?;
    let merges = merges.iter().enumerate().map(|(number, pair)| merge(vocabulary, number, pair));
    let merges = merges.collect::<Result<Vec<_>, _>>()?;
    let around = around(file, vocabulary, (cut.begins, false))?;
    Ok(joined(cut, vocabulary, &merges, (around, false)).with(vocabulary.added(false)))
}

/// Pairs that are joined within what texts are cut into, what is put around them, and whether they get a space before
/// them.
pub(crate) fn joined(
    cut: &Cut,
    vocabulary: &Vocabulary<'_>,
    merges: &[[&str; 2]],
    (around, space): (Value, bool),
) -> Parts {
    Parts {
        normalizer: if cut.composed { json!({ "type": "NFC" }) } else { Value::Null },
        pre_tokenizer: json!({ "type": "Sequence", "pretokenizers": (cut.steps)(space) }),
        post_processor: around,
        decoder: bytes(true, false),
        model: json!({
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": cut.whole,
            "vocab": vocabulary.ids(),
            "merges": merges,
        }),
    }
}

/// Two tokens that are a token together.
pub(crate) fn merge<'t>(
    vocabulary: &Vocabulary<'_>,
    number: usize,
    pair: &'t str,
) -> Result<[&'t str; 2], GgufTokenizerError> {
    let known = |text: &str| vocabulary.get(text).is_some();
    match pair.split_once(' ') {
        Some((left, right)) if known(left) && known(right) && known(&[left, right].concat()) => Ok([left, right]),
        _ => Err(GgufTokenizerError::Merge { number, pair: pair.to_owned() }),
    }
}
