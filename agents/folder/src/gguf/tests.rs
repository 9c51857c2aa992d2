use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tensorlink_model::fixture::Folder;
use tensorlink_model::fixture::gguf::{FAMILIES, File, PIECES, Value};
use tensorlink_model::{Family, GgufError, Setting};

use super::super::fixture::{integers, written};
use super::super::{FolderError, ModelFolder, Survey, TemplateError, TokenizerError, Tuned, may_be_model};
use super::GgufTokenizerError;

const TEMPLATE: &str = "{% for message in messages %}{{ message.content }}<end>{% endfor %}";

fn of(family: Family) -> File {
    File::of(&Folder::new(family))
}

/// A file on disk.
fn stored(file: &File) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiny.gguf");
    fs::write(&path, file.bytes()).unwrap();
    (dir, path)
}

fn opened(file: &File) -> ModelFolder {
    ModelFolder::open(&stored(file).1).unwrap()
}

/// Why a file is refused, beside its name.
fn refused(file: &File) -> FolderError {
    let (_dir, path) = stored(file);
    match ModelFolder::open(&path).unwrap_err() {
        FolderError::Within { file, reason } => {
            assert_eq!(file, path);
            *reason
        }
        other => panic!("{other}"),
    }
}

/// Why the tokenizer of Llama's file is refused once a key has another value, or none.
fn tokenizer(key: &str, value: Option<Value>) -> GgufTokenizerError {
    let (mut file, key) = (of(Family::Llama), format!("tokenizer.ggml.{key}"));
    match value {
        Some(value) => file.set(&key, value),
        None => file.remove(&key),
    }
    match refused(&file) {
        FolderError::Tokenizer(TokenizerError::Gguf(error)) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn a_file_opens_like_its_folder() {
    for family in FAMILIES {
        let model = Folder::new(family);
        let dir = written(&model);
        let folder = ModelFolder::open(dir.path()).unwrap();
        let (_dir, path) = stored(&File::of(&model));
        assert!(may_be_model(&path) && may_be_model(dir.path()));
        let file = ModelFolder::open(&path).unwrap();
        assert!(file.is_file() && !folder.is_file());
        assert_eq!(file.architecture(), folder.architecture(), "{family:?}");
        // Bit by bit: what is stored is exact in 16 bits as well.
        assert!(file.weights().unwrap() == folder.weights().unwrap(), "{family:?}");
        if family != Family::Bert {
            assert_eq!(file.ends().unwrap(), folder.ends().unwrap());
        }
        assert_eq!(file.calibration().unwrap(), None);
        assert!(file.checkpoint().unwrap().dtypes().into_iter().eq(["F32"]));
        assert_eq!(file.file_bytes(), fs::metadata(&path).unwrap().len());
    }
}

#[test]
fn byte_pairs_are_joined_as_the_file_says() {
    for (family, first) in [(Family::Llama, true), (Family::Qwen2, false), (Family::Gpt2, false)] {
        let file = opened(&of(family));
        let begun = |ids: &[u32]| if first { [&[0], ids].concat() } else { ids.to_vec() };
        let tokenizer = file.tokenizer();
        assert_eq!(tokenizer.encode("the cat").unwrap(), begun(&[11, 14]), "{family:?}");
        assert_eq!(tokenizer.encode("heat<end>").unwrap(), begun(&[5, 6, 13, 3]));
        assert_eq!(tokenizer.encode_bare("the<s>").unwrap(), [11, 0]);
        assert_eq!(tokenizer.decode(&[0, 11, 14, 2]).unwrap(), "the cat");
        assert_eq!(tokenizer.len(), PIECES.len());
    }
    for (flags, expected) in [
        (vec![("add_bos_token", true)], vec![0, 11]),
        (vec![("add_eos_token", true)], vec![11, 2]),
        (vec![("add_bos_token", true), ("add_eos_token", true)], vec![0, 11, 2]),
    ] {
        let mut file = of(Family::Qwen3);
        flags.into_iter().for_each(|(key, flag)| file.set(&format!("tokenizer.ggml.{key}"), Value::Flag(flag)));
        assert_eq!(opened(&file).tokenizer().encode("the").unwrap(), expected);
    }
}

#[test]
fn texts_are_cut_as_each_name_says() {
    // Single digits, and pairs of them that may only be joined where no cut is between.
    let tokens = ["<s>", "1", "2", "Ġ", "11", "111", "1111", "Ġ1", "a", "!", "a!"];
    let cut = |pre: &str, text: &str| {
        let mut file = of(Family::Gpt2);
        file.set("tokenizer.ggml.pre", pre.into());
        file.set("tokenizer.ggml.tokens", tokens.into());
        file.set("tokenizer.ggml.token_type", Value::I32s((0..11).map(|id| if id == 0 { 3 } else { 1 }).collect()));
        file.set("tokenizer.ggml.merges", ["1 1", "11 11", "11 1", "Ġ 1", "a !"].into());
        file.set("tokenizer.ggml.eos_token_id", Value::U32(0));
        let encoded = opened(&file).tokenizer().encode(text).unwrap();
        encoded.into_iter().map(|id| tokens[id as usize]).collect::<Vec<_>>().join("|").replace("<s>|", "")
    };
    for (pre, ones, spaced) in [
        ("gpt-2", "1111", "Ġ1"),
        ("smollm", "1|1|1|1", "Ġ|1"),
        ("refact", "1|1|1|1", "Ġ|1"),
        ("llama-bpe", "111|1", "Ġ|1"),
        ("qwen2", "1|1|1|1", "Ġ|1"),
        ("default", "111|1", "Ġ|1"),
    ] {
        assert_eq!(cut(pre, "1111"), ones, "{pre}");
        assert_eq!(cut(pre, " 1"), spaced, "{pre}");
        assert_eq!(cut(pre, "a!"), "a|!", "{pre}");
    }
}

#[test]
fn pieces_are_joined_best_first_and_the_rest_is_bytes() {
    let tokens = ["<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "▁", "a", "b", "ab", "▁a", "▁ab", "<user>"];
    let mut file = of(Family::Llama);
    file.set("tokenizer.ggml.model", "llama".into());
    for key in ["pre", "merges", "eot_token_id", "padding_token_id"] {
        file.remove(&format!("tokenizer.ggml.{key}"));
    }
    file.set("tokenizer.ggml.tokens", tokens.into());
    file.set("tokenizer.ggml.token_type", Value::I32s(vec![2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1, 4]));
    let scores = vec![0.0, 0.0, 0.0, 0.0, 0.0, -4.0, -5.0, -6.0, -1.0, -2.0, -3.0, 0.0];
    file.set("tokenizer.ggml.scores", Value::F32s(scores.clone()));
    file.set("tokenizer.ggml.bos_token_id", Value::U32(1));
    let model = opened(&file);
    let pieces = |text: &str| {
        let ids = model.tokenizer().encode(text).unwrap();
        ids.into_iter().map(|id| tokens[id as usize]).collect::<Vec<_>>()
    };
    assert_eq!(pieces("ab a"), ["<s>", "▁ab", "▁a"]);
    assert_eq!(pieces("aab"), ["<s>", "▁a", "ab"]);
    assert_eq!(pieces("é"), ["<s>", "▁", "<0xC3>", "<0xA9>"]);
    assert_eq!(pieces("a<user>b"), ["<s>", "▁a", "<user>", "▁", "b"]);
    assert_eq!(model.tokenizer().decode(&[1, 10, 9, 3, 4]).unwrap(), "ab aé");
    // The best pieces first: now "▁a" before "ab".
    let mut other = scores.clone();
    other[9] = -0.5;
    file.set("tokenizer.ggml.scores", Value::F32s(other));
    let ids = opened(&file).tokenizer().encode("ab").unwrap();
    assert_eq!(ids, [1, 10], "\"▁a\" and \"b\" are joined as well");
    file.set("tokenizer.ggml.add_space_prefix", Value::Flag(false));
    assert_eq!(opened(&file).tokenizer().encode("ab").unwrap(), [1, 8]);

    let scored = |scores: Vec<f32>| {
        let mut file = file.clone();
        file.set("tokenizer.ggml.scores", Value::F32s(scores));
        refused(&file).to_string()
    };
    assert!(scored(scores[1..].to_vec()).contains("tokenizer.ggml.scores"));
    assert!(scored(vec![f32::NAN; 12]).contains("has no score"));
    for (key, value) in
        [("precompiled_charsmap", Value::I32s(vec![1])), ("remove_extra_whitespaces", Value::Flag(true))]
    {
        let mut file = file.clone();
        file.set(&format!("tokenizer.ggml.{key}"), value);
        assert!(refused(&file).to_string().contains(key));
    }
}

#[test]
fn words_are_taken_apart_as_bert_does() {
    let file = opened(&of(Family::Bert));
    let tokenizer = file.tokenizer();
    assert_eq!(tokenizer.encode("The cats, mat").unwrap(), [0, 4, 5, 6, 3, 7, 2]);
    assert_eq!(tokenizer.decode(&[0, 4, 5, 6, 2]).unwrap(), "the cats");
    let mut symbol = of(Family::Bert);
    let words = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "▁the", "▁cat", "ℝ", "▁mat"];
    symbol.set("tokenizer.ggml.tokens", words.into());
    assert_eq!(opened(&symbol).tokenizer().encode("Cat").unwrap(), [0, 5, 2], "a symbol is no capital");
    // A vocabulary with capitals is of a model that tells them apart.
    let mut cased = of(Family::Bert);
    let words = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "▁The", "▁cat", "s", "▁mat"];
    cased.set("tokenizer.ggml.tokens", words.into());
    assert_eq!(opened(&cased).tokenizer().encode("The Cat").unwrap(), [0, 4, 3, 2]);
    // Tokens by their keys, whatever they are called.
    cased.set("tokenizer.ggml.cls_token_id", Value::U32(1));
    cased.set("tokenizer.ggml.seperator_token_id", Value::U32(0));
    assert_eq!(opened(&cased).tokenizer().encode("cat").unwrap(), [1, 5, 0]);
}

#[test]
fn tokenizers_that_are_not_known_are_refused() {
    assert_eq!(tokenizer("model", None), GgufTokenizerError::Absent);
    assert_eq!(tokenizer("tokens", None), GgufTokenizerError::Absent);
    assert_eq!(tokenizer("model", Some("t5".into())), GgufTokenizerError::Model("t5".into()));
    assert_eq!(tokenizer("pre", None), GgufTokenizerError::Uncut);
    let unknown = tokenizer("pre", Some("tekken".into()));
    assert!(unknown.to_string().contains("gpt-2, smollm, refact, llama-bpe, qwen2, default"), "{unknown}");
    assert!(matches!(tokenizer("tokens", Some(Value::U32(1))), GgufTokenizerError::Metadata(GgufError::Type { .. })));
}

#[test]
fn holes_in_a_vocabulary_are_refused() {
    let changed = |place: usize, text: &str| {
        let mut tokens = PIECES;
        tokens[place] = text;
        tokenizer("tokens", Some(tokens.into()))
    };
    for (error, part) in [
        (changed(14, ""), "token 14 has no text"),
        (changed(14, &"t".repeat(1025)), "token 14 has 1025 bytes"),
        (changed(14, "the"), "token 14 is \"the\", as token 11 is"),
        (tokenizer("tokens", Some(["a"].into())), "15 entries for 1 tokens"),
        (tokenizer("token_type", Some(Value::I32s(vec![7; 15]))), "unknown kind 7"),
        (tokenizer("merges", Some(["t h", "the"].into())), "merge 1 is \"the\""),
        (tokenizer("merges", Some(["t x"].into())), "merge 0 is \"t x\""),
        (tokenizer("merges", Some(["h t"].into())), "merge 0 is \"h t\""),
        (tokenizer("bos_token_id", Some(Value::U32(15))), "bos_token_id"),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
    // More tokens than the model has rows.
    let mut file = of(Family::Llama);
    let more: Vec<String> = PIECES.into_iter().map(str::to_owned).chain(["x".into(), "y".into()]).collect();
    file.set("tokenizer.ggml.tokens", Value::Texts(more));
    file.set("tokenizer.ggml.token_type", Value::I32s(vec![1; 17]));
    let error = refused(&file);
    let expected = TokenizerError::Vocabulary { token: 16, vocabulary: 16 };
    assert!(matches!(&error, FolderError::Tokenizer(error) if *error == expected), "{error}");
    // Rows without a token are no holes.
    let mut file = of(Family::Llama);
    let mut kinds = vec![1; 15];
    (kinds[1], kinds[3]) = (5, 5);
    file.set("tokenizer.ggml.token_type", Value::I32s(kinds));
    file.set("tokenizer.ggml.tokens", {
        let mut tokens = PIECES;
        (tokens[1], tokens[3]) = ("", "");
        tokens.into()
    });
    file.remove("tokenizer.ggml.padding_token_id");
    file.remove("tokenizer.ggml.eot_token_id");
    assert_eq!(opened(&file).tokenizer().len(), 13);
}

#[test]
fn what_is_no_model_is_refused_with_its_path() {
    let (_dir, path) = stored(&of(Family::Llama));
    let refused = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        ModelFolder::open(&path).unwrap_err()
    };
    let whole = of(Family::Llama).bytes();
    for (content, part) in [
        (&b"{}"[..], "name a folder as Hugging Face publishes it, or a .gguf file"),
        (b"", "name a folder"),
        (&whole[..whole.len() / 2], "download it again"),
        (&whole[..whole.len() - 1], "download it again"),
        (b"GGUF\x01\0\0\0", "version 1"),
    ] {
        let error = refused(content);
        let text = error.to_string();
        assert!(text.contains("tiny.gguf") && text.contains(part), "{text}");
        let survey = Survey::of(&path).unwrap();
        assert!(survey.folder.is_none() && survey.refused[0].to_string() == text);
    }
    assert!(!may_be_model(&path.with_file_name("none")));
    let none = ModelFolder::open(Path::new("/nowhere")).unwrap_err();
    assert!(none.to_string().contains("or .gguf files"), "{none}");
    let mut wrong = of(Family::Llama);
    wrong.tensor("blk.0.ffn_up.weight").unwrap().shape.reverse();
    let text = refused(&wrong.bytes()).to_string();
    assert!(text.contains("tiny.gguf") && text.contains("blk.0.ffn_up.weight"), "{text}");
}

#[test]
fn a_template_that_is_wrong_is_refused_and_the_rest_is_read() {
    let mut file = of(Family::Llama);
    assert!(opened(&file).chat_template().unwrap().is_none());
    file.set("tokenizer.chat_template", "{% if %}".into());
    let (_dir, path) = stored(&file);
    let folder = ModelFolder::open(&path).unwrap();
    assert_eq!(folder.tokenizer().encode("the").unwrap(), [0, 11]);
    let said = folder.chat_template().unwrap_err().to_string();
    assert!(said.contains("the chat template in tokenizer.chat_template cannot be read"), "{said}");
    assert!(matches!(
        Survey::of(&path).unwrap().refused.as_slice(),
        [FolderError::Template(TemplateError::Syntax { .. })]
    ));
    file.set("tokenizer.chat_template", TEMPLATE.into());
    let template = opened(&file).chat_template().unwrap().unwrap();
    assert_eq!(template.render([("user", "the cat")]).unwrap(), "the cat<end>");
}

#[test]
fn a_file_becomes_a_folder_that_says_the_same() {
    for family in FAMILIES {
        let mut file = of(family);
        file.set("tokenizer.chat_template", TEMPLATE.into());
        if family == Family::Bert {
            file.set("bert.pooling_type", Value::U32(2));
        }
        let (dir, path) = stored(&file);
        let survey = Survey::of(&path).unwrap();
        assert!(survey.refused.is_empty() && survey.ignored.is_empty(), "{:?}", survey.refused);
        let file = survey.folder.unwrap();
        let out = dir.path().join("folder");
        file.copy(&out).unwrap();
        let folder = ModelFolder::open(&out).unwrap();
        assert_eq!(folder.description(), file.description(), "{family:?}");
        assert!(folder.weights().unwrap() == file.weights().unwrap());
        assert_eq!(folder.tokenizer().encode("the cat").unwrap(), file.tokenizer().encode("the cat").unwrap());
        let config: Json = serde_json::from_slice(&fs::read(out.join("tokenizer_config.json")).unwrap()).unwrap();
        assert_eq!(config["chat_template"], json!(TEMPLATE));
    }
}

#[test]
fn a_file_is_trained_on_and_quantised_like_a_folder() {
    let (dir, path) = stored(&of(Family::Qwen2));
    let file = ModelFolder::open(&path).unwrap();
    let out = dir.path().join("tuned");
    let weights = file.weights().unwrap();
    Tuned { folder: &file, architecture: file.architecture(), weights: &weights, classes: &[] }.write(&out).unwrap();
    assert!(ModelFolder::open(&out).unwrap().weights().unwrap() == weights);

    let out = dir.path().join("integers");
    super::super::integers::write(&file, &integers(&file, Setting::Standard), None, &out).unwrap();
    let integers = ModelFolder::open(&out).unwrap();
    assert!(integers.integers().is_some() && !integers.is_file());
    assert_eq!(integers.description(), file.description());
    assert_eq!(integers.tokenizer().encode("the cat").unwrap(), file.tokenizer().encode("the cat").unwrap());
}
