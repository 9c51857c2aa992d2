use std::fs;

use serde_json::json;
use tempfile::TempDir;
use tensorlink_model::fixture::{CONTEXT, FAMILIES, Folder, Stored, VOCABULARY, WORDS, tokenizer_json};
use tensorlink_model::{Family, Output, Pooling};

use super::fixture::{dense, written};
use super::*;

fn llama() -> TempDir {
    written(&Folder::new(Family::Llama))
}

/// What opening says once a file has this content, or is gone.
fn refused(dir: &TempDir, file: &str, content: Option<&[u8]>) -> FolderError {
    let path = dir.path().join(file);
    match content {
        Some(content) => fs::write(path, content).unwrap(),
        None => fs::remove_file(path).unwrap(),
    }
    ModelFolder::open(dir.path()).unwrap_err()
}

/// The pretrained model that script/setup fetches.
fn minilm() -> ModelFolder {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolchain/models/all-MiniLM-L6-v2");
    ModelFolder::open(&path).expect("run script/setup, which fetches the model")
}

#[test]
fn every_family_opens() {
    for family in FAMILIES {
        let dir = written(&Folder::new(family));
        let folder = ModelFolder::open(dir.path()).unwrap();
        assert_eq!(folder.architecture().family, family);
        assert!(folder.weights().unwrap().get("embedding.tokens").is_ok());
        assert_eq!(folder.tokenizer().len(), WORDS.len());
    }
}

#[test]
fn shards_open_through_their_index() {
    let model = Folder::new(Family::Qwen3);
    let dir = written(&model);
    let whole = ModelFolder::open(dir.path()).unwrap().weights().unwrap();
    let (index, shards) = model.sharded(2, Stored::Bf16);
    fs::remove_file(dir.path().join(WEIGHTS)).unwrap();
    fs::write(dir.path().join(INDEX), index).unwrap();
    for (name, bytes) in &shards {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    assert_eq!(ModelFolder::open(dir.path()).unwrap().weights().unwrap(), whole);
    let error = refused(&dir, &shards[1].0, None);
    assert!(matches!(&error, FolderError::Read { file, .. } if file.ends_with(&shards[1].0)), "{error}");
}

#[test]
fn incomplete_folders_are_refused_by_file() {
    for name in ["config.json", "tokenizer.json"] {
        let error = refused(&llama(), name, None);
        assert!(matches!(&error, FolderError::Absent { name: n, .. } if n == name), "{error}");
    }
    let dir = llama();
    fs::write(dir.path().join("pytorch_model.bin"), b"").unwrap();
    let error = refused(&dir, WEIGHTS, None);
    assert!(matches!(error, FolderError::NoWeights(_)) && error.to_string().contains("safe_serialization"));
    assert!(matches!(refused(&llama(), "config.json", Some(b"\xff{}")), FolderError::Config(_)));
    assert!(matches!(refused(&llama(), WEIGHTS, Some(b"")), FolderError::Weights(_)));
    assert!(matches!(refused(&llama(), "modules.json", Some(b"{}")), FolderError::Modules(_)));
    let other = br#"[{ "type": "sentence_transformers.models.LSTM", "path": "1_LSTM" }]"#;
    assert!(matches!(refused(&llama(), "modules.json", Some(other)), FolderError::Module(_)));
    let dir = llama();
    fs::remove_file(dir.path().join(WEIGHTS)).unwrap();
    assert!(matches!(refused(&dir, INDEX, Some(b"{")), FolderError::Weights(_)));
}

#[test]
fn values_are_looked_at_when_read() {
    let mut model = Folder::new(Family::Llama);
    model.tensor("model.norm.weight").unwrap().values[3] = f32::NAN;
    let dir = written(&model);
    let folder = ModelFolder::open(dir.path()).unwrap();
    assert!(matches!(folder.weights(), Err(FolderError::Weights(_))));
}

#[test]
fn tokenizers_of_other_models_are_refused() {
    let broken = refused(&llama(), "tokenizer.json", Some(b"{ \"model\": \xff }"));
    assert!(matches!(broken, FolderError::Tokenizer(TokenizerError::Syntax(_))), "{broken}");
    for (table, told) in
        [("AQID", "is cut off"), ("/////w==", "is cut off"), ("BAAAAAAAAAA=", "leads out"), ("?", "Invalid")]
    {
        let mut json: serde_json::Value = serde_json::from_slice(&tokenizer_json()).unwrap();
        let table = serde_json::json!({ "type": "Precompiled", "precompiled_charsmap": table });
        json["normalizer"] = serde_json::json!({ "type": "Sequence", "normalizers": [table] });
        let error = refused(&llama(), "tokenizer.json", Some(json.to_string().as_bytes()));
        assert!(error.to_string().contains(told), "{error}");
    }
    let mut model = Folder::new(Family::Llama);
    model.config.insert("vocab_size".into(), 8.into());
    let error = ModelFolder::open(written(&model).path()).unwrap_err();
    let expected = TokenizerError::Vocabulary { token: 11, vocabulary: 8 };
    assert!(matches!(&error, FolderError::Tokenizer(e) if *e == expected), "{error}");
    model.config.insert("vocab_size".into(), VOCABULARY.into());
    model.config.insert("eos_token_id".into(), 13.into());
    let error = ModelFolder::open(written(&model).path()).unwrap_err();
    assert!(matches!(&error, FolderError::Tokenizer(TokenizerError::Special { token: 13 })), "{error}");
}

#[test]
fn tokens_that_were_added_beyond_the_model_are_neither_read_nor_written() {
    let mut tokenizer: serde_json::Value = serde_json::from_slice(&tokenizer_json()).unwrap();
    let image = serde_json::json!({ "id": VOCABULARY, "content": "<image>", "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false, "special": true });
    tokenizer["added_tokens"].as_array_mut().unwrap().push(image);
    // A word for every row: numbers of added tokens go on from there.
    for id in WORDS.len()..VOCABULARY {
        tokenizer["model"]["vocab"][format!("word{id}")] = id.into();
    }
    let with_image = |family| {
        let dir = written(&Folder::new(family));
        fs::write(dir.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
        ModelFolder::open(dir.path())
    };
    for family in FAMILIES {
        let folder = with_image(family).unwrap();
        let tokenizer = folder.tokenizer();
        // To the tokenizer it is an unknown word.
        assert_eq!(tokenizer.encode("cat <image>").unwrap(), [0, 5, 3, 2], "{family:?}");
        assert_eq!((tokenizer.len(), tokenizer.beyond()), (VOCABULARY, &["<image>".to_owned()][..]));
    }
    assert!(ModelFolder::open(llama().path()).unwrap().tokenizer().beyond().is_empty());
}

#[test]
fn texts_are_neither_padded_nor_cut_off() {
    let dir = llama();
    let folder = ModelFolder::open(dir.path()).unwrap();
    let tokenizer = folder.tokenizer();
    // The file pads to 4 tokens and truncates there.
    assert_eq!(tokenizer.encode("cat").unwrap(), [0, 5, 2]);
    assert_eq!(tokenizer.encode("the cat sat on the zebra").unwrap(), [0, 4, 5, 7, 9, 4, 3, 2]);
    assert_eq!(tokenizer.encode("").unwrap(), [0, 2]);
    let longest = ["dog"; CONTEXT - 2].join(" ");
    assert_eq!(tokenizer.encode(&longest).unwrap().len(), CONTEXT);
    let error = tokenizer.encode(&format!("{longest} ran")).unwrap_err();
    assert_eq!(error, TokenizerError::Context { tokens: 11, context: 10 });
    assert_eq!(error.to_string(), "the text has 11 tokens, the model takes at most 10; shorten the text");
    assert!(matches!(tokenizer.encode(&"x".repeat(2561)), Err(TokenizerError::Bytes { bytes: 2561, most: 2560, .. })));
    assert_eq!(tokenizer.decode(&[0, 4, 6, 8, 2]).unwrap(), "the dog ran");
    // A row of the model without a word.
    assert_eq!(tokenizer.decode(&[4, 15]).unwrap(), "the");
    assert_eq!(tokenizer.decode(&[4, 16]), Err(TokenizerError::Token { token: 16, vocabulary: 16 }));
}

/// The tokenizer of tests with something changed, opened with Llama's folder.
fn changed(change: impl FnOnce(&mut serde_json::Value)) -> Result<ModelFolder, FolderError> {
    let mut tokenizer: serde_json::Value = serde_json::from_slice(&tokenizer_json()).unwrap();
    change(&mut tokenizer);
    let dir = llama();
    fs::write(dir.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    ModelFolder::open(dir.path())
}

#[test]
fn tokens_around_texts_are_tokens_of_the_model() {
    let error = changed(|json| json["post_processor"]["special_tokens"]["</s>"]["ids"][0] = VOCABULARY.into());
    let due = TokenizerError::Vocabulary { token: VOCABULARY as u32, vocabulary: VOCABULARY as u32 };
    assert!(matches!(&error, Err(FolderError::Tokenizer(error)) if *error == due), "{error:?}");
}

#[test]
fn what_the_library_panics_over_is_an_error() {
    // It counts on what is read of a decoder to be JSON; a download may have been cut off there.
    let cut = refused(&llama(), "tokenizer.json", Some(br#"{"version": "1.0", "decoder": {"type":"#));
    assert!(matches!(&cut, FolderError::Tokenizer(TokenizerError::Syntax(_))), "{cut}");
    // It looks up what a template names when the first text is read.
    let absent = changed(|json| drop(json["post_processor"]["special_tokens"].as_object_mut().unwrap().remove("</s>")));
    assert!(matches!(absent, Err(FolderError::Tokenizer(TokenizerError::Syntax(_)))), "{absent:?}");
    // It goes back from the end of a word that is shorter than what it may lose there.
    let shorter = json!({ "type": "Strip", "content": "a", "start": 0, "stop": 2 });
    let folder = changed(|json| json["decoder"] = shorter).unwrap();
    let tokenizer = folder.tokenizer();
    assert!(matches!(tokenizer.decode(&[10]), Err(TokenizerError::Text(_))));
    assert_eq!(tokenizer.decode(&[4]).unwrap(), "the");
    let mut spelling = tokenizer.spelling(&[]);
    assert!(matches!(tokenizer.spell(10, &mut spelling), Err(TokenizerError::Text(_))));
}

#[test]
fn pairs_are_joined_the_same_each_time() {
    let model = json!({ "type": "BPE", "dropout": 0.5, "unk_token": "<unk>", "byte_fallback": false,
        "vocab": { "<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "ab": 6 }, "merges": [["a", "b"]] });
    let folder = changed(|json| json["model"] = model).unwrap();
    assert_eq!(folder.tokenizer().encode_all(&"ab".repeat(50)).unwrap(), [6; 50]);
}

#[test]
fn a_text_that_goes_on_is_not_ended() {
    let dir = llama();
    let folder = ModelFolder::open(dir.path()).unwrap();
    let tokenizer = folder.tokenizer();
    let ends = folder.ends().unwrap();
    assert_eq!(tokenizer.encode_beginning("the cat", &ends).unwrap(), [0, 4, 5]);
    // What the text itself ends with stays.
    assert_eq!(tokenizer.encode_beginning("the cat </s>", &ends).unwrap(), [0, 4, 5, 2]);
    assert_eq!(tokenizer.encode_beginning("the cat", &[]).unwrap(), [0, 4, 5, 2]);
    assert_eq!(tokenizer.encode_bare("<s> the cat").unwrap(), [0, 4, 5]);
    assert_eq!(tokenizer.encode_bare(""), Err(TokenizerError::Empty));
    let longest = ["dog"; CONTEXT].join(" ");
    assert_eq!(tokenizer.encode_bare(&longest).unwrap().len(), CONTEXT);
    let error = tokenizer.encode_beginning(&longest, &ends).unwrap_err();
    assert_eq!(error, TokenizerError::Context { tokens: CONTEXT + 1, context: 10 });
}

#[test]
fn ends_come_from_both_files() {
    let dir = llama();
    let ends = |json: Option<&str>| {
        if let Some(json) = json {
            fs::write(dir.path().join("generation_config.json"), json).unwrap();
        }
        ModelFolder::open(dir.path()).unwrap().ends()
    };
    // `config.json` says 2 and 3.
    assert_eq!(ends(None).unwrap(), [2, 3]);
    assert_eq!(ends(Some("{\"eos_token_id\": 1, \"temperature\": 0.6}")).unwrap(), [1, 2, 3]);
    assert_eq!(ends(Some("{\"eos_token_id\": [3, 0]}")).unwrap(), [0, 2, 3]);
    assert_eq!(ends(Some("{\"eos_token_id\": null}")).unwrap(), [2, 3]);
    for (json, part) in
        [("{", "EOF"), ("{\"eos_token_id\": \"a\"}", "did not match"), ("{\"eos_token_id\": 16}", "eos_token_id 16")]
    {
        let error = ends(Some(json)).unwrap_err();
        assert!(matches!(&error, FolderError::Generation(_)), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_text_without_tokens_is_refused() {
    let dir = llama();
    let mut json: serde_json::Value = serde_json::from_slice(&tokenizer_json()).unwrap();
    json["post_processor"] = serde_json::Value::Null;
    fs::write(dir.path().join("tokenizer.json"), json.to_string()).unwrap();
    let folder = ModelFolder::open(dir.path()).unwrap();
    assert_eq!(folder.tokenizer().encode("  "), Err(TokenizerError::Empty));
    assert_eq!(folder.tokenizer().encode("mat").unwrap(), [11]);
}

#[test]
fn text_files_must_be_utf8() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text");
    fs::write(&path, "naïve").unwrap();
    assert_eq!(read_text(&path).unwrap(), "naïve");
    fs::write(&path, b"na\xefve").unwrap();
    let error = read_text(&path).unwrap_err();
    assert!(matches!(error, FolderError::Utf8 { position: 2, .. }), "{error}");
}

#[test]
fn a_decoder_with_a_pooling_makes_vectors() {
    for family in [Family::Gpt2, Family::Qwen2, Family::Qwen3, Family::Gemma3] {
        let dir = written(&Folder::new(family));
        fs::create_dir(dir.path().join("1_Pooling")).unwrap();
        fs::write(dir.path().join(POOLING), r#"{"pooling_mode_lasttoken": true}"#).unwrap();
        let folder = ModelFolder::open(dir.path()).unwrap();
        assert_eq!(folder.architecture().output, Output::Embedding(Pooling::Last));
        let weights = folder.weights().unwrap();
        assert!(weights.get("head.weight").is_err(), "what chooses words plays no part");
        assert!(folder.sentences().is_ok());
    }
}

#[test]
fn minilm_opens_as_published() {
    let folder = minilm();
    let a = folder.architecture();
    assert_eq!((a.family, a.layers, a.width, a.context), (Family::Bert, 6, 384, 512));
    assert_eq!(a.output, Output::Embedding(Pooling::Mean));
    let weights = folder.weights().unwrap();
    // 22,713,216 in the file, less what mean pooling does not use: the pooler and the vector of second texts.
    assert_eq!(weights.count(), 22_713_216 - (384 * 384 + 384) - 384);
    assert_eq!(
        folder.checkpoint().unwrap().idle(),
        ["embeddings.position_ids", "pooler.dense.bias", "pooler.dense.weight"]
    );
    assert_eq!(folder.tokenizer().len(), 30_522);
}

#[test]
fn minilm_tokenises_as_published() {
    let folder = minilm();
    let tokenizer = folder.tokenizer();
    // By the rows of its vocab.txt.
    let ids = [101, 1996, 4937, 2938, 2006, 1996, 13523, 1012, 102];
    assert_eq!(tokenizer.encode("The cat sat on the mat.").unwrap(), ids);
    assert_eq!(tokenizer.encode("Naïve!").unwrap(), [101, 15743, 999, 102]);
    assert_eq!(tokenizer.encode("photosynthesis").unwrap(), [101, 7760, 6038, 25078, 102]);
    assert_eq!(tokenizer.decode(&ids).unwrap(), "the cat sat on the mat.");
    let error = tokenizer.encode(&"mat ".repeat(600)).unwrap_err();
    assert_eq!(error, TokenizerError::Context { tokens: 602, context: 512 });
}

#[test]
fn dense_layers_come_out_of_their_folders() {
    let dir = dense();
    let folder = ModelFolder::open(dir.path()).unwrap();
    let a = folder.architecture();
    assert_eq!((a.output, a.width, a.vector_width()), (Output::Embedding(Pooling::Mean), 8, 4));
    let weights = folder.weights().unwrap();
    let shape = |name: &str| weights.get(name).map(|matrix| (matrix.rows(), matrix.columns()));
    assert_eq!((shape("dense.0.weight"), shape("dense.0.bias")), (Ok((6, 8)), Ok((1, 6))));
    assert_eq!(shape("dense.1.weight"), Ok((4, 6)));
    assert!(shape("dense.1.bias").is_err());

    let survey = Survey::of(dir.path()).unwrap();
    assert!(survey.refused.is_empty() && survey.ignored.is_empty(), "{survey:?}");
    let copy = dir.path().join("copy");
    survey.folder.unwrap().copy(&copy).unwrap();
    let copied = ModelFolder::open(&copy).unwrap();
    assert!(copied.architecture() == a && copied.weights().unwrap() == weights);
    assert_eq!(copied.file_bytes(), folder.file_bytes());

    for (file, part) in [(WEIGHTS, "3_Dense_4/model.safetensors"), ("config.json", "has no 3_Dense_4/config.json")] {
        let broken = dense();
        let error = refused(&broken, &format!("3_Dense_4/{file}"), None).to_string();
        assert!(error.contains(part), "{error}");
    }
    let error = refused(&dense(), "2_Dense/model.safetensors", Some(b"")).to_string();
    assert!(error.contains("2_Dense/model.safetensors is not a whole safetensors file"), "{error}");
}
