use std::fs;

use prost::Message;
use serde::Deserialize;
use tempfile::TempDir;
use tensorlink_model::Family;
use tensorlink_model::fixture::{Folder, VOCABULARY};
use tokenizers::Tokenizer;

use super::super::fixture::written;
use super::super::special::Special;
use super::super::{FolderError, ModelFolder, Survey, TokenizerError};
use super::{Model, Piece, Training, tokenizer};

const KINDS: [(&str, Family, &[u8]); 4] = [
    ("llama", Family::Llama, include_bytes!("llama.model")),
    ("gemma", Family::Gemma3, include_bytes!("gemma.model")),
    ("xlmr", Family::Roberta, include_bytes!("xlmr.model")),
    ("unigram", Family::Mistral, include_bytes!("unigram.model")),
];

/// What the library makes of texts: `reference.py`.
#[derive(Deserialize)]
struct Reference {
    texts: Vec<String>,
    due: std::collections::BTreeMap<String, Due>,
}

#[derive(Deserialize)]
struct Due {
    pieces: usize,
    ids: Vec<Vec<u32>>,
    texts: Vec<String>,
}

fn made(bytes: &[u8], family: Family, config: &Special) -> Tokenizer {
    Tokenizer::from_bytes(tokenizer(bytes, family, config).unwrap()).unwrap()
}

fn config(json: &str) -> Special {
    serde_json::from_str(json).unwrap()
}

#[test]
fn texts_are_read_as_the_library_reads_them() {
    let reference: Reference = serde_json::from_str(include_str!("due.json")).unwrap();
    for (name, family, bytes) in KINDS {
        let due = &reference.due[name];
        // XLM-RoBERTa's numbers are not its file's, and it has a mask beside.
        let fairseq = family == Family::Roberta;
        let number = |id: &u32| match (fairseq, *id) {
            (false, id) => id,
            (true, 0) => 3,
            (true, id) => id + 1,
        };
        for legacy in ["{}", r#"{"legacy": false}"#] {
            let tokenizer = made(bytes, family, &config(legacy));
            assert_eq!(tokenizer.get_vocab_size(true), due.pieces + if fairseq { 2 } else { 0 }, "{name}");
            // Where only a text's beginning gets a space, `transformers` gives it none if it has one; the library does.
            let same = |text: &str| legacy == "{}" || !text.starts_with(' ');
            for ((text, ids), back) in
                reference.texts.iter().zip(&due.ids).zip(&due.texts).filter(|((text, _), _)| same(text))
            {
                let ids: Vec<u32> = ids.iter().map(number).collect();
                let read = tokenizer.encode_fast(text.as_str(), false).unwrap();
                assert_eq!(read.get_ids(), ids, "{name}: {text:?} as {:?}", read.get_tokens());
                // What is unknown is left out, as `transformers` does it, where the library writes a sign.
                if !back.contains('\u{2047}') {
                    assert_eq!(tokenizer.decode(&ids, true).unwrap(), *back, "{name}");
                }
            }
        }
    }
}

#[test]
fn tokens_are_put_around_texts_as_the_folder_says() {
    let [llama, gemma, xlmr, _] = KINDS;
    let around = |(_, family, bytes): (&str, Family, &[u8]), json: &str| {
        let tokenizer = made(bytes, family, &config(json));
        let bare = tokenizer.encode_fast("the cat", false).unwrap().len();
        let ids = tokenizer.encode_fast("the cat", true).unwrap().get_ids().to_vec();
        let first = ids[..1].to_vec();
        let around = ids.len() - bare;
        (around, first[0], ids[ids.len() - 1])
    };
    assert_eq!(around(llama, "{}").0, 1);
    assert_eq!(around(llama, "{}").1, 1);
    assert_eq!(around(gemma, "{}").1, 2);
    assert_eq!(around(xlmr, "{}"), (2, 0, 2));
    let both = r#"{"add_eos_token": true, "eos_token": {"content": "</s>", "lstrip": false}}"#;
    assert_eq!(around(llama, both), (2, 1, 2));
    assert_eq!(around(gemma, both), (2, 2, 1));
    assert_eq!(around(llama, r#"{"add_bos_token": false}"#).0, 0);
    let lacking = tokenizer(llama.2, llama.1, &config(r#"{"bos_token": "<bos>"}"#)).unwrap_err();
    assert!(lacking.contains("begins texts"), "{lacking}");
}

#[test]
fn tokens_beside_the_file_are_read() {
    let (_, family, bytes) = KINDS[0];
    let more = r#"{"added_tokens_decoder": {"0": {"content": "<unk>", "special": true}, "400": {"content": "<|im_start|>",
        "special": true}, "401": {"content": "<tool>"}}}"#;
    let tokenizer = made(bytes, family, &config(more));
    let ids = tokenizer.encode_fast("<|im_start|><tool></s>", false).unwrap().get_ids().to_vec();
    assert_eq!(ids, [400, 401, 2]);
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), "<tool>");
    // Older folders have them in a file of their own, and a token that begins a text may be one of them.
    let dir = folder(family, "tokenizer.model", bytes);
    let write = |name: &str, json: &str| fs::write(dir.path().join(name), json).unwrap();
    write("added_tokens.json", r#"{"<tool>": 401, "<|im_start|>": 400}"#);
    write("tokenizer_config.json", r#"{"bos_token": "<|im_start|>", "added_tokens_decoder": {}}"#);
    let opened = ModelFolder::open(dir.path()).unwrap();
    assert_eq!(opened.tokenizer().encode("<tool>the").unwrap()[..2], [400, 401]);
    assert_eq!(Survey::of(dir.path()).unwrap().ignored, [""; 0]);
    write("added_tokens.json", "[]");
    assert!(ModelFolder::open(dir.path()).unwrap_err().to_string().contains("added_tokens.json"));
}

/// Rows of a model for any of these tokenizers.
const ROWS: usize = 32 * VOCABULARY;

/// A folder of a family with a file in place of its tokenizer.
pub(in super::super) fn folder(family: Family, name: &str, bytes: &[u8]) -> TempDir {
    let mut model = Folder::new(family);
    model.config.insert("vocab_size".into(), ROWS.into());
    for tensor in model.tensors.iter_mut().filter(|tensor| tensor.shape[0] == VOCABULARY) {
        tensor.shape[0] = ROWS;
        tensor.values = tensor.values.repeat(ROWS / VOCABULARY);
    }
    let dir = written(&model);
    fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
    fs::write(dir.path().join(name), bytes).unwrap();
    dir
}

#[test]
fn a_folder_with_its_file_opens_and_is_copied_with_a_tokenizer() {
    for ((_, family, bytes), name) in
        KINDS.into_iter().zip(["tokenizer.model", "tokenizer.model", "sentencepiece.bpe.model"])
    {
        let dir = folder(family, name, bytes);
        let opened = ModelFolder::open(dir.path()).unwrap();
        let ids = opened.tokenizer().encode("The cat sat").unwrap();
        assert_eq!(Survey::of(dir.path()).unwrap().ignored, [""; 0], "{family:?}");
        let copy = dir.path().join("copy");
        opened.copy(&copy).unwrap();
        assert!(copy.join("tokenizer.json").exists() && !copy.join(name).exists());
        assert_eq!(ModelFolder::open(&copy).unwrap().tokenizer().encode("The cat sat").unwrap(), ids);
    }
}

#[test]
fn files_that_cannot_be_used_are_refused_by_name() {
    let refused = |bytes: &[u8]| {
        let error = ModelFolder::open(folder(Family::Llama, "tokenizer.model", bytes).path()).unwrap_err();
        assert!(matches!(&error, FolderError::Tokenizer(TokenizerError::Instead { file: "tokenizer.model", .. })));
        error.to_string()
    };
    let llama = KINDS[0].2;
    for (bytes, told) in [(&b""[..], "unknown"), (&llama[..700], "download it again"), (b"version https://git-lfs", "")]
    {
        let error = refused(bytes);
        assert!(error.contains("tokenizer.model") && error.contains(told), "{error}");
    }
    let changed = |change: &dyn Fn(&mut Model)| {
        let mut model = Model::decode(llama).unwrap();
        change(&mut model);
        refused(&model.encode_to_vec())
    };
    let training =
        |model: &mut Model, kind| model.training = Some(Training { model: Some(kind), ..Training::default() });
    assert!(changed(&|model| training(model, 3)).contains("type 3"));
    assert!(changed(&|model| model.training.as_mut().unwrap().space_after = Some(true)).contains("spaces"));
    assert!(changed(&|model| model.pieces[300].kind = Some(9)).contains("piece 300"));
    assert!(changed(&|model| model.pieces[300].score = Some(f32::NAN)).contains("token 300"));
    assert!(changed(&|model| model.pieces[300].piece = None).contains("token 300"));
    assert!(changed(&|model| model.pieces[0].kind = Some(1)).contains("unknown"));
    let again = |model: &mut Model| {
        let piece = model.pieces[399].piece.clone();
        model.pieces.push(Piece { piece, ..Piece::default() });
    };
    assert!(changed(&again).contains("as token 399"));
    assert!(changed(&|model| model.rules.as_mut().unwrap().characters = Some(vec![1, 2, 3])).contains("is cut off"));
    let dir = folder(Family::Llama, "tokenizer.model", llama);
    fs::write(dir.path().join("tokenizer_config.json"), r#"{"add_bos_token": "yes"}"#).unwrap();
    assert!(ModelFolder::open(dir.path()).unwrap_err().to_string().contains("tokenizer_config.json"));
}

/// Whatever stands in the file: a tokenizer, or words.
#[test]
fn bytes_of_any_kind() {
    for (_, family, bytes) in KINDS {
        let try_out = |bytes: &[u8]| {
            if let Ok(json) = tokenizer(bytes, family, &Special::default()) {
                let text = "the cat \u{ff34}\u{fb01}\tsat";
                let _ = Tokenizer::from_bytes(json).map(|tokenizer| tokenizer.encode_fast(text, true));
            }
        };
        for at in (0..bytes.len()).step_by(241) {
            try_out(&bytes[..at]);
            for byte in [0, 0x7f, 0xff] {
                let mut bytes = bytes.to_vec();
                bytes[at] = byte;
                try_out(&bytes);
            }
        }
    }
}
