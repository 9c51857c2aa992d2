use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;
use tempfile::TempDir;
use tensorlink_model::Family;
use tokenizers::Tokenizer;

use super::super::sentencepiece::tests::folder;
use super::super::special::Special;
use super::super::{FolderError, ModelFolder, Survey, TokenizerError};
use super::{PAIRS, TOKENS, tokenizer};

const VOCABULARY: &[u8] = include_bytes!("vocab.json");
const MERGES: &[u8] = include_bytes!("merges.txt");
const FAMILIES: [(&str, Family); 3] = [("gpt2", Family::Gpt2), ("roberta", Family::Roberta), ("qwen2", Family::Qwen2)];

/// What `transformers` makes of texts: `reference.py`.
#[derive(Deserialize)]
struct Reference {
    texts: Vec<String>,
    due: BTreeMap<String, Vec<Vec<u32>>>,
}

#[test]
fn texts_are_read_as_transformers_reads_them() {
    let reference: Reference = serde_json::from_str(include_str!("due.json")).unwrap();
    for (name, family) in FAMILIES {
        let tokenizer = tokenizer(VOCABULARY, MERGES, family, &Special::default()).unwrap();
        let tokenizer = Tokenizer::from_bytes(tokenizer).unwrap();
        for (text, due) in reference.texts.iter().zip(&reference.due[name]) {
            let read = tokenizer.encode_fast(text.as_str(), true).unwrap();
            assert_eq!(read.get_ids(), due, "{name}: {text:?}");
            if !text.contains('<') && !text.contains('\u{301}') {
                assert_eq!(tokenizer.decode(due, true).unwrap(), *text, "{name}");
            }
        }
    }
}

/// A folder of a family with both files in place of its tokenizer.
fn of(family: Family, tokens: &[u8], pairs: &[u8]) -> TempDir {
    let dir = folder(family, TOKENS, tokens);
    fs::write(dir.path().join(PAIRS), pairs).unwrap();
    dir
}

#[test]
fn a_folder_with_the_lists_opens_and_its_tokens_are_its_own() {
    for (_, family) in FAMILIES {
        let dir = of(family, VOCABULARY, MERGES);
        let write = |name: &str, json: &str| fs::write(dir.path().join(name), json).unwrap();
        write("added_tokens.json", r#"{"<|im_start|>": 350}"#);
        let json =
            r#"{"bos_token": "<|im_start|>", "add_bos_token": true, "add_eos_token": false, "pad_token": "<pad>"}"#;
        write("tokenizer_config.json", json);
        let opened = ModelFolder::open(dir.path()).unwrap();
        let ids = opened.tokenizer().encode("<pad>The cat").unwrap();
        assert_eq!(ids[..2], [350, 1], "{family:?}");
        assert_eq!(Survey::of(dir.path()).unwrap().ignored, [""; 0], "{family:?}");
    }
}

#[test]
fn lists_that_cannot_be_used_are_refused_by_name() {
    let refused = |tokens: &[u8], pairs: &[u8]| {
        let error = ModelFolder::open(of(Family::Gpt2, tokens, pairs).path()).unwrap_err();
        assert!(matches!(&error, FolderError::Tokenizer(TokenizerError::Instead { .. })), "{error}");
        error.to_string()
    };
    for (tokens, pairs, file, told) in [
        (&b"[]"[..], MERGES, TOKENS, "map"),
        (b"{}", b"", TOKENS, "no tokens"),
        (br#"{"a": 0, "b": 9}"#, b"", TOKENS, "number 9"),
        (br#"{"a": 0, "b": 0}"#, b"", TOKENS, "\"a\" and \"b\""),
        (VOCABULARY, "#version: 0.2\nĠ Ġ\nT\n".as_bytes(), PAIRS, "merge 2"),
        (VOCABULARY, "Ġ Ġ\nzz qq\n".as_bytes(), PAIRS, "\"zz qq\""),
        (VOCABULARY, b"\xff", PAIRS, "utf-8"),
    ] {
        let error = refused(tokens, pairs);
        assert!(error.contains(file) && error.contains(told), "{error}");
    }
    let dir = of(Family::Gpt2, VOCABULARY, MERGES);
    fs::remove_file(dir.path().join(PAIRS)).unwrap();
    let error = ModelFolder::open(dir.path()).unwrap_err();
    assert!(matches!(&error, FolderError::Absent { name, .. } if name == PAIRS), "{error}");
}
