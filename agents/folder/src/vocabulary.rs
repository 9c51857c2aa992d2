//! The `tokenizer.json` of a folder that has none: of BERT's list of words, as `transformers` makes it, of
//! SentencePiece's file, or of lists of byte pairs. Of other tokenizers it is said how one is made.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tensorlink_model::Description;
use tensorlink_model::family::{PAIRS, TOKENS, WORDS};

use super::small::Small;
use super::special::Special;
use super::{FolderError, MAX_JSON, MAX_TOKENIZER, TOKENIZER, TokenizerError, byte_pairs, sentencepiece, special};

/// What folders of other tokenizers have in its place; the first that is there is named.
const OTHERS: [&str; 6] =
    ["tokenizer.model", "sentencepiece.bpe.model", "spiece.model", "vocab.json", "tekken.json", WORDS];

/// What says how words are read.
const CONFIG: &str = "tokenizer_config.json";

/// What of it matters here.
#[derive(Deserialize, Default)]
struct Config {
    do_lower_case: Option<bool>,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
}

/// The bytes of `tokenizer.json`: the folder's own, or what it has in its place comes to.
///
/// # Errors
/// [`FolderError::NoTokenizer`], [`FolderError::Absent`]; as the files are read.
pub(super) fn tokenizer(small: &Small, description: &Description) -> Result<Vec<u8>, FolderError> {
    if let Some(own) = small.optional(TOKENIZER, MAX_TOKENIZER)? {
        return Ok(own);
    }
    let family = description.architecture.family;
    let Some(&file) = family.tokenizer().files.iter().find(|name| **name != PAIRS && small.has(name)) else {
        return Err(match (small.folder(), OTHERS.into_iter().find(|name| small.has(name))) {
            (Some(folder), Some(instead)) => FolderError::NoTokenizer { folder: folder.to_owned(), instead },
            _ => small.absent(TOKENIZER),
        });
    };
    let bytes = small.required(file, MAX_TOKENIZER)?;
    let refused = |file: &'static str, reason: String| FolderError::Tokenizer(TokenizerError::Instead { file, reason });
    if file == WORDS {
        let words = String::from_utf8(bytes).map_err(|error| refused(file, error.to_string()))?;
        return of_words(&words, &stated(small, CONFIG)?).map_err(|reason| refused(file, reason));
    }
    let special: Special = stated(small, CONFIG)?;
    let special = special.with(stated(small, special::ADDED)?);
    if file == TOKENS {
        let pairs = small.required(PAIRS, MAX_TOKENIZER)?;
        let made = byte_pairs::tokenizer(&bytes, &pairs, family, &special);
        return made.map_err(|(file, reason)| refused(file, reason));
    }
    sentencepiece::tokenizer(&bytes, family, &special).map_err(|reason| refused(file, reason))
}

/// What a file says, if there is one.
fn stated<T: DeserializeOwned + Default>(small: &Small, file: &'static str) -> Result<T, FolderError> {
    let config = small.optional(file, MAX_JSON)?;
    let config = config.map(|json| serde_json::from_slice(&json)).transpose();
    let refused = |error: serde_json::Error| TokenizerError::Instead { file, reason: error.to_string() };
    Ok(config.map_err(refused)?.unwrap_or_default())
}

fn of_words(words: &str, config: &Config) -> Result<Vec<u8>, String> {
    // Of words that stand there twice the later line counts.
    let vocabulary: BTreeMap<&str, usize> = words.lines().enumerate().map(|(id, word)| (word, id)).collect();
    let special = |word: &str| vocabulary.get(word).copied().ok_or_else(|| format!("it has no {word}"));
    let [unknown, first, last] = ["[UNK]", "[CLS]", "[SEP]"].map(special);
    let (_, first, last) = (unknown?, first?, last?);
    let added = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].iter().filter_map(|word| {
        let id = vocabulary.get(word)?;
        Some(json!({ "id": id, "content": word, "single_word": false, "lstrip": false, "rstrip": false,
                     "normalized": false, "special": true }))
    });
    let piece = |word: &str| json!({ "SpecialToken": { "id": word, "type_id": 0 } });
    let text = |id: &str, kind: u8| json!({ "Sequence": { "id": id, "type_id": kind } });
    let token = |word: &str, id: usize| json!({ "id": word, "ids": [id], "tokens": [word] });
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added.collect::<Vec<Value>>(),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": true,
            "handle_chinese_chars": config.tokenize_chinese_chars.unwrap_or(true),
            "strip_accents": config.strip_accents,
            "lowercase": config.do_lower_case.unwrap_or(true),
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [piece("[CLS]"), text("A", 0), piece("[SEP]")],
            "pair": [piece("[CLS]"), text("A", 0), piece("[SEP]"), text("B", 1), piece("[SEP]")],
            "special_tokens": { "[CLS]": token("[CLS]", first), "[SEP]": token("[SEP]", last) },
        },
        "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary.iter().map(|(word, id)| ((*word).to_owned(), (*id).into())).collect::<Map<_, _>>(),
        },
    });
    serde_json::to_vec(&tokenizer).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tensorlink_model::Family;
    use tensorlink_model::fixture::Folder;

    use super::super::fixture::written;
    use super::super::{ModelFolder, Survey};
    use super::*;

    const TEXTS: [&str; 6] = [
        "The cat sat on the mat.",
        "Naïve CAFÉ, photosynthesis; don't!",
        "日本語 and 漢字 mixed\twith\u{200b} blanks\u{a0}\n",
        "[CLS] spelled out [MASK] and ##pieces",
        "Привет, ελληνικά 😀 \u{fffd}\u{0}x",
        "",
    ];

    #[test]
    fn a_list_of_words_reads_as_the_tokenizer_that_was_made_of_it() {
        let minilm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolchain/models/all-MiniLM-L6-v2");
        let own = ModelFolder::open(&minilm).expect("run script/setup, which fetches the model");
        let dir = tempfile::tempdir().unwrap();
        let files = ["config.json", "model.safetensors", "tokenizer_config.json", WORDS];
        for name in files {
            fs::copy(minilm.join(name), dir.path().join(name)).unwrap();
        }
        let made = ModelFolder::open(dir.path()).unwrap();
        assert_eq!(made.tokenizer().len(), own.tokenizer().len());
        for text in TEXTS {
            assert_eq!(made.tokenizer().encode(text), own.tokenizer().encode(text), "{text:?}");
        }
        // What is copied needs no list any more, and the list is not told to be of no use.
        assert_eq!(Survey::of(dir.path()).unwrap().ignored, [""; 0]);
        let copy = dir.path().join("copy");
        made.copy(&copy).unwrap();
        assert!(copy.join("tokenizer.json").exists() && !copy.join(WORDS).exists());
        let again = ModelFolder::open(&copy).unwrap();
        assert_eq!(again.tokenizer().encode(TEXTS[1]), own.tokenizer().encode(TEXTS[1]));
    }

    #[test]
    fn a_folder_of_another_tokenizer_is_told_how_one_is_made() {
        for (family, other) in [
            (Family::Llama, "spiece.model"),
            (Family::Roberta, "tokenizer.model"),
            (Family::Gpt2, "tokenizer.model"),
            (Family::Roberta, WORDS),
        ] {
            let dir = written(&Folder::new(family));
            fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
            fs::write(dir.path().join(other), "").unwrap();
            let error = ModelFolder::open(dir.path()).unwrap_err();
            assert!(matches!(&error, FolderError::NoTokenizer { instead, .. } if *instead == other), "{error}");
            assert!(error.to_string().contains("AutoTokenizer") && error.to_string().contains(other), "{error}");
        }
        let dir = written(&Folder::new(Family::Bert));
        fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
        for (words, told) in [("[UNK]\n[CLS]\nthe\n", "[SEP]"), ("", "[UNK]")] {
            fs::write(dir.path().join(WORDS), words).unwrap();
            let error = ModelFolder::open(dir.path()).unwrap_err().to_string();
            assert!(error.contains(WORDS) && error.contains(told), "{error}");
        }
    }
}
