//! Tokenizers of others, and what they are made of: GGUF files' lists of tokens, SentencePiece's files.

use std::fs;
use std::sync::LazyLock;

use serde_json::Value as Json;
use tensorlink_folder::{FolderError, ModelFolder, TextTokenizer, TokenizerError};
use tensorlink_model::Family;
use tensorlink_model::fixture::Folder;
use tensorlink_model::fixture::gguf::{File, Value};
use tokenizers::Tokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use crate::feed::Feed;
use crate::folders::{model, roomy, written};

/// Most bytes of a text for each of its tokens: none has more than 1,024, and a byte that is no character
/// becomes three.
const LONGEST: usize = 3 * 1024 + 1;
/// What stands for a space.
const SPACE: char = '\u{2581}';
/// How texts are cut, in the words of GGUF files; the last is none.
const CUTS: [&str; 7] = ["gpt-2", "smollm", "refact", "llama-bpe", "qwen2", "default", "other"];
/// What folders say of special tokens.
const CONFIGS: [&str; 4] = [
    "{}",
    r#"{"legacy": false}"#,
    r#"{"add_eos_token": true, "eos_token": {"content": "</s>"}, "add_bos_token": false}"#,
    r#"{"bos_token": "<x>", "added_tokens_decoder": {"500": {"content": "<x>", "special": true},
        "501": {"content": "<y>"}, "600": {"content": "<z>"}}}"#,
];

/// The tokenizer of a GGUF file: how it is made (7 bytes), its tokens, its merges, and a text.
///
/// # Panics
/// Where a rule is broken.
pub fn gguf_tokenizer(bytes: &[u8]) {
    let (file, texts, text) = described(bytes);
    let Ok(folder) = opened(&file) else { return };
    let inner = folder.tokenizer().inner();
    for (id, text) in texts {
        assert_eq!(inner.token_to_id(&text), Some(id), "{text:?}");
    }
    obeys(folder.tokenizer(), folder.architecture().vocabulary, &text);
    bounded(folder.tokenizer(), &text);
}

/// The folder of a GGUF file that an input describes, opened.
///
/// # Errors
/// Why it is refused.
pub fn of_gguf(bytes: &[u8]) -> Result<ModelFolder, FolderError> {
    opened(&described(bytes).0)
}

fn opened(file: &File) -> Result<ModelFolder, FolderError> {
    let dir = written([]);
    let path = dir.path().join("tiny.gguf");
    fs::write(&path, file.bytes()).expect("a temporary file");
    ModelFolder::open(&path)
}

/// The GGUF file that an input describes, the normal tokens that it has by their numbers, and a text to read.
fn described(bytes: &[u8]) -> (File, Vec<(u32, String)>, String) {
    static MODELS: LazyLock<[File; 2]> =
        LazyLock::new(|| [Family::Llama, Family::Bert].map(|family| File::of(&roomy(Folder::new(family)))));
    let mut feed = Feed::new(bytes);
    let (kind, cut, flags) = (feed.below(3), feed.below(CUTS.len()), feed.byte());
    let flag = |bit: u8| flags >> bit & 1 == 1;
    let mut file = MODELS[usize::from(kind == 2)].clone();
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    for name in ["eot_token_id", "padding_token_id", "merges"] {
        file.remove(&key(name));
    }
    for name in ["bos_token_id", "eos_token_id", "unknown_token_id"] {
        file.set(&key(name), Value::U32(feed.byte().into()));
    }
    if flag(1) {
        file.remove(&key("unknown_token_id"));
    }
    for (bit, name) in [(2, "add_bos_token"), (3, "add_eos_token"), (4, "add_space_prefix")] {
        file.set(&key(name), Value::Flag(flag(bit)));
    }
    let (mut texts, mut kinds, mut scores) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..feed.byte() {
        kinds.push(i32::from(feed.byte() % 8));
        let score = feed.byte().cast_signed();
        scores.push(if score == i8::MIN { f32::NAN } else { score.into() });
        let length = feed.below(16);
        texts.push(String::from_utf8_lossy(feed.take(length)).into_owned());
    }
    if flag(0) {
        let bytes: Vec<String> = match kind {
            0 => (0..=u8::MAX).map(|byte| format!("<0x{byte:02X}>")).collect(),
            _ => alphabet().map(String::from).collect(),
        };
        kinds.resize(texts.len() + bytes.len(), if kind == 0 { 6 } else { 1 });
        scores.resize(kinds.len(), 0.0);
        texts.extend(bytes);
    }
    let mut merges = Vec::new();
    for _ in 0..feed.byte() {
        let [left, right] =
            [feed.byte(), feed.byte()].map(|at| texts.get(usize::from(at)).cloned().unwrap_or_default());
        merges.push(format!("{left} {right}"));
    }
    let normal = kinds.iter().zip(&texts).zip(0..).filter(|((of, _), _)| kind < 2 && **of == 1);
    let normal = normal.map(|((_, text), id)| (id, text.clone())).collect();
    file.set(&key("model"), ["llama", "gpt2", "bert"][kind].into());
    file.set(&key("pre"), CUTS[cut].into());
    file.set(&key("scores"), Value::F32s(scores));
    file.set(&key("token_type"), Value::I32s(kinds));
    file.set(&key("tokens"), Value::Texts(texts));
    if !merges.is_empty() || kind == 1 {
        file.set(&key("merges"), Value::Texts(merges));
    }
    (file, normal, String::from_utf8_lossy(feed.rest()).into_owned())
}

/// What stands for bytes in tokens of GPT-2's kind.
fn alphabet() -> impl Iterator<Item = char> {
    let mut all: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    all.sort_unstable();
    all.into_iter()
}

/// SentencePiece's file in a folder: the family's letter, which of the configurations, a text after its length,
/// the file.
///
/// # Panics
/// Where a rule is broken.
pub fn sentencepiece(bytes: &[u8]) {
    let Ok(folder) = of_sentencepiece(bytes) else { return };
    let mut feed = Feed::new(bytes);
    feed.take(2);
    let length = feed.byte();
    let text = String::from_utf8_lossy(feed.take(length.into()));
    obeys(folder.tokenizer(), folder.architecture().vocabulary, &text);
    bounded(folder.tokenizer(), &text);
}

/// The folder of SentencePiece's file that an input describes, opened.
///
/// # Errors
/// Why it is refused.
pub fn of_sentencepiece(bytes: &[u8]) -> Result<ModelFolder, FolderError> {
    let mut feed = Feed::new(bytes);
    let (model, config) = (model(feed.byte()), CONFIGS[feed.below(CONFIGS.len())]);
    let length = feed.byte();
    feed.take(length.into());
    let file = if model.family == Family::Roberta { "sentencepiece.bpe.model" } else { "tokenizer.model" };
    let dir = written([
        ("config.json", model.config.as_slice()),
        ("model.safetensors", model.weights.as_slice()),
        ("tokenizer_config.json", config.as_bytes()),
        (file, feed.rest()),
    ]);
    ModelFolder::open(dir.path())
}

/// What holds of every tokenizer that fits its model: it says the same each time; tokens are the model's, and no more
/// than are asked for; a text of which nothing is lost comes back.
pub(crate) fn obeys(tokenizer: &TextTokenizer, vocabulary: u32, text: &str) {
    let context = tokenizer.context() as usize;
    let known = |ids: &[u32]| assert!(ids.iter().all(|id| *id < vocabulary), "{ids:?}");
    if let Ok(ids) = tokenizer.encode(text) {
        assert!((1..=context).contains(&ids.len()), "{ids:?}");
        known(&ids);
        assert_eq!(tokenizer.encode(text).as_ref(), Ok(&ids));
        let beginning = tokenizer.encode_beginning(text, &[0, 1, 2]).unwrap_or_default();
        assert!(ids.starts_with(&beginning), "{beginning:?} of {ids:?}");
    }
    if let Ok(ids) = tokenizer.encode_all(text) {
        known(&ids);
        assert_eq!(tokenizer.encode_all(text).as_ref(), Ok(&ids));
        let (back, spelled) = (tokenizer.decode(&ids), spelled(tokenizer, &ids));
        if loses_nothing(tokenizer.inner(), text) {
            assert_eq!(back.as_deref(), Ok(text), "{ids:?}");
            assert!(text.contains(char::REPLACEMENT_CHARACTER) || spelled.as_deref() == Ok(text), "{spelled:?}");
        }
    }
    for most in [0, 1, 7] {
        for ids in [tokenizer.encode_cut(text, most), tokenizer.encode_read(text, most)].iter().flatten() {
            assert!(ids.len() <= most, "{most}: {ids:?}");
            known(ids);
        }
        let pair = tokenizer.encode_pair((text, "the cat"), most).unwrap_or_default();
        assert!(pair.len() <= most, "{most}: {pair:?}");
        known(&pair.into_iter().map(|(id, _)| id).collect::<Vec<_>>());
    }
    let all: Vec<u32> = (0..vocabulary).collect();
    let _any_text = (tokenizer.decode(&all), tokenizer.decode(&[]));
    assert!(tokenizer.decode(&[vocabulary]).is_err());
}

/// A text as it is written while its tokens come.
fn spelled(tokenizer: &TextTokenizer, ids: &[u32]) -> Result<String, TokenizerError> {
    let mut spelling = tokenizer.spelling(&[]);
    let mut text = String::new();
    for id in ids {
        text += &tokenizer.spell(*id, &mut spelling)?;
    }
    Ok(text + &tokenizer.spell_rest(&spelling)?)
}

/// A text that comes back is no longer than its tokens allow.
fn bounded(tokenizer: &TextTokenizer, text: &str) {
    let ids = tokenizer.encode_all(text).unwrap_or_default();
    let back = tokenizer.decode(&ids).unwrap_or_default();
    assert!(back.len() <= LONGEST * ids.len(), "{} bytes of {} tokens", back.len(), ids.len());
}

/// Whether a tokenizer must give this text back: every byte has a token, nothing is read as something else, and the
/// text spells out no token that is cut out of it.
fn loses_nothing(tokenizer: &Tokenizer, text: &str) -> bool {
    let Ok(json) = serde_json::to_value(tokenizer) else { return false };
    let added = json.get("added_tokens").and_then(Json::as_array).into_iter().flatten();
    let mut added = added.filter_map(|token| token.get("content")?.as_str()).map(|token| token.replace(SPACE, " "));
    if added.any(|token| text.contains(token.trim())) {
        return false;
    }
    let has = |token: String| tokenizer.get_vocab(false).contains_key(&token);
    if json.pointer("/model/byte_fallback") == Some(&Json::Bool(true)) {
        let spelled = text.contains(SPACE) || text.contains("<0x");
        let bytes = (0..=u8::MAX).all(|byte| has(format!("<0x{byte:02X}>")));
        // Where a space has no piece, it is written by bytes, and comes back as what stands for it.
        return !spelled && by_pieces(&json) && bytes && has(SPACE.into());
    }
    by_bytes(&json) && alphabet().all(|c| has(c.into()))
}

/// Whether it writes spaces in another way, and does nothing else before it joins pieces, or takes the likeliest.
fn by_pieces(json: &Json) -> bool {
    let escaped = serde_json::json!({ "type": "Replace", "pattern": { "String": " " }, "content": SPACE });
    let back = serde_json::json!({ "type": "Replace", "pattern": { "String": SPACE }, "content": " " });
    let kinds = |key: &str| -> Vec<&str> {
        let steps = json.pointer(key).and_then(Json::as_array).into_iter().flatten();
        steps.filter_map(|step| step.get("type")?.as_str()).collect()
    };
    let before = kinds("/normalizer/normalizers");
    let decoders = kinds("/decoder/decoders");
    let prefix = match (before.as_slice(), decoders.as_slice()) {
        (["Replace"], ["Replace", "ByteFallback", "Fuse"]) => 0,
        (["Prepend", "Replace"], ["Replace", "ByteFallback", "Fuse", "Strip"]) => 1,
        _ => return false,
    };
    let step = json.pointer(&format!("/normalizer/normalizers/{prefix}"));
    step == Some(&escaped) && json.pointer("/decoder/decoders/0") == Some(&back) && json["pre_tokenizer"].is_null()
}

/// Whether it joins the bytes of a text's parts.
fn by_bytes(json: &Json) -> bool {
    let parts = json.pointer("/pre_tokenizer/pretokenizers").and_then(Json::as_array);
    let kept = |part: &Json| match part["type"].as_str() {
        Some("Split") => part["behavior"] == "Isolated",
        Some("Digits") => true,
        Some("ByteLevel") => part["add_prefix_space"] == Json::Bool(false),
        _ => false,
    };
    let last = parts.and_then(|parts| parts.last()).is_some_and(|part| part["type"] == "ByteLevel");
    let plain = ["continuing_subword_prefix", "end_of_word_suffix", "unk_token"].map(|key| &json["model"][key]);
    json["normalizer"].is_null()
        && last
        && parts.is_some_and(|parts| parts.iter().all(kept))
        && json.pointer("/decoder/type") == Some(&"ByteLevel".into())
        && json.pointer("/model/type") == Some(&"BPE".into())
        && plain.into_iter().all(Json::is_null)
}
