//! Published folders: the files beside the weights, as whoever publishes a model wrote them.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use tempfile::TempDir;
use tensorlink_folder::{FolderError, ModelFolder, Survey};
use tensorlink_model::Family;
use tensorlink_model::fixture::{Folder, Stored, VOCABULARY, tokenizer_json};

use crate::{templates, tokenizers};

/// Rows of each model: more than any tokenizer here has tokens.
pub const ROWS: usize = 32 * VOCABULARY;
/// The families that folders here are of, each known by a letter, from `a` on; one that scores pairs comes after them.
pub const FAMILIES: [Family; 6] =
    [Family::Llama, Family::Gemma3, Family::Roberta, Family::Mistral, Family::Gpt2, Family::Bert];
/// The files that an input may have, each known by a letter, from `a` on.
pub const FILES: [&str; 18] = [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "added_tokens.json",
    "chat_template.jinja",
    "generation_config.json",
    "modules.json",
    "1_Pooling/config.json",
    "2_Dense/config.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "calibration.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "quantized.json",
    "model.safetensors.index.json",
    "README.md",
];

/// A tiny model with [`ROWS`] rows, by its files.
pub(crate) struct Model {
    pub(crate) family: Family,
    pub(crate) config: Vec<u8>,
    pub(crate) weights: Vec<u8>,
}

static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let model = |(family, folder)| {
        let folder = roomy(folder);
        Model { family, config: folder.config_json(), weights: folder.safetensors(Stored::Bf16) }
    };
    let pairs = (Family::Bert, Folder::reranker(Family::Bert));
    FAMILIES.into_iter().map(|family| (family, Folder::new(family))).chain([pairs]).map(model).collect()
});

/// The model that a byte chooses; a letter from `a` on chooses it in order.
pub(crate) fn model(byte: u8) -> &'static Model {
    let place = usize::from(byte.wrapping_sub(b'a')) % MODELS.len();
    &MODELS[place]
}

/// A tiny model with more rows.
pub(crate) fn roomy(mut folder: Folder) -> Folder {
    folder.config.insert("vocab_size".into(), ROWS.into());
    for tensor in folder.tensors.iter_mut().filter(|tensor| tensor.shape.first() == Some(&VOCABULARY)) {
        tensor.values = tensor.values.repeat(ROWS / VOCABULARY);
        if let Some(rows) = tensor.shape.first_mut() {
            *rows = ROWS;
        }
    }
    folder
}

/// These files in a folder, which is there as long as it is kept.
pub(crate) fn written<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder for temporary files");
    for (name, content) in files {
        let path = dir.path().join(name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, content));
        made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    dir
}

/// What an input says: a letter for the family and a text, then files, each after a byte of 0 and its letter. An empty
/// file is none. Where the input has none, the configuration and the tokenizer are those of tests.
fn files(bytes: &[u8]) -> (&str, BTreeMap<&str, &[u8]>) {
    static TOKENIZER: LazyLock<Vec<u8>> = LazyLock::new(tokenizer_json);
    let mut parts = bytes.split(|byte| *byte == 0);
    let (letter, text) = parts.next().and_then(<[u8]>::split_first).unwrap_or((&b'a', &[]));
    let model = model(*letter);
    let mut files: BTreeMap<&str, &[u8]> = BTreeMap::from([
        ("config.json", model.config.as_slice()),
        ("tokenizer.json", TOKENIZER.as_slice()),
        ("model.safetensors", model.weights.as_slice()),
    ]);
    for (letter, content) in parts.filter_map(<[u8]>::split_first) {
        files.insert(FILES[usize::from(letter.wrapping_sub(b'a')) % FILES.len()], content);
    }
    files.retain(|_, content| !content.is_empty());
    (std::str::from_utf8(text).unwrap_or_default(), files)
}

/// The folder of an input, opened.
///
/// # Errors
/// Why it is refused.
pub fn opened(bytes: &[u8]) -> Result<ModelFolder, FolderError> {
    ModelFolder::open(written(files(bytes).1).path())
}

/// A folder of many files.
///
/// # Panics
/// Where a rule is broken.
pub fn folder(bytes: &[u8]) {
    let (text, files) = files(bytes);
    let dir = written(files);
    let opened = ModelFolder::open(dir.path());
    match Survey::of(dir.path()) {
        Ok(survey) => {
            assert_eq!(survey.folder.is_some(), survey.refused.is_empty());
            assert!(survey.folder.is_none() || opened.is_ok(), "what is surveyed without a fault opens: {opened:?}");
        }
        Err(FolderError::Quantised(_)) => {}
        Err(error) => panic!("there is a folder to survey: {error}"),
    }
    let Ok(folder) = opened else { return };
    let a = folder.architecture();
    let (vocabulary, context) = (a.vocabulary, a.context as usize);
    tokenizers::obeys(folder.tokenizer(), vocabulary, text);
    if let Ok(ends) = folder.ends() {
        assert!(ends.is_sorted_by(|a, b| a < b) && ends.iter().all(|end| *end < vocabulary), "{ends:?}");
    }
    if let Ok(ids) = folder.sentences().map(|sentences| sentences.encode(text, None)) {
        let of_context = |ids: &Vec<u32>| (1..=context).contains(&ids.len());
        assert!(ids.iter().all(|ids| of_context(ids) && ids.iter().all(|id| *id < vocabulary)), "{ids:?}");
    }
    if let Ok(Some(pairs)) = folder.pairs() {
        let ids = pairs.encode(text, "the cat").unwrap_or_default();
        assert!(ids.len() <= context && ids.iter().all(|id| *id < a.token_numbers()), "{ids:?}");
    }
    if let Ok(Some(template)) = folder.chat_template() {
        let tells_time = bytes.windows(8).any(|part| part == b"strftime");
        templates::obeys(&template, &[("user", text)], tells_time);
    }
    let _known = (folder.several_classes(), folder.calibration());
}
