//! How a sentence-transformers model reads texts: after a prompt, and no further than it was trained to.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::modules::MODULES;
use super::{FolderError, MAX_JSON, ModelFolder, TextTokenizer, TokenizerError};

/// What the models that are asked for vectors are told before each text.
pub(super) const PROMPTS: &str = "config_sentence_transformers.json";
/// How the tokens of texts are made; named after families once, whatever the model's own.
pub(super) const READING: [&str; 3] =
    ["sentence_bert_config.json", "sentence_roberta_config.json", "sentence_xlm-roberta_config.json"];
/// Most prompts of a model, and bytes of each.
const MOST: usize = 1024;
const LONGEST: usize = 1 << 16;

/// What of [`PROMPTS`] matters here.
#[derive(Deserialize, Default)]
struct Prompts {
    #[serde(default)]
    prompts: Option<BTreeMap<String, Option<String>>>,
    default_prompt_name: Option<String>,
}

/// What of the files of [`READING`] matters here.
#[derive(Deserialize, Default)]
struct Reading {
    max_seq_length: Option<u32>,
    do_lower_case: Option<bool>,
}

/// What of `tokenizer_config.json` matters here. It may be a float as large as no number of tokens is.
#[derive(Deserialize, Default)]
struct Stated {
    model_max_length: Option<f64>,
}

/// What of `1_Pooling/config.json` matters here.
#[derive(Deserialize, Default)]
struct Pooled {
    include_prompt: Option<bool>,
}

/// How texts become tokens.
#[derive(Clone, Debug)]
pub struct Sentences {
    tokenizer: TextTokenizer,
    /// Tokens after which texts are cut; without, longer ones than the context are refused.
    most: Option<usize>,
    lower: bool,
    prompts: BTreeMap<String, String>,
    default: Option<String>,
}

impl ModelFolder {
    /// How it reads texts that it makes vectors of: as its sentence-transformers files say, if it has any.
    ///
    /// # Errors
    /// [`FolderError::Sentences`], or a file that cannot be read.
    pub fn sentences(&self) -> Result<Sentences, FolderError> {
        let prompts: Prompts = self.read_as(PROMPTS)?.unwrap_or_default();
        let mut reading: Option<Reading> = None;
        for name in READING {
            reading = reading.map_or_else(|| self.read_as(name), |found| Ok(Some(found)))?;
        }
        let of_sentences = reading.is_some() || self.small.optional(MODULES, MAX_JSON)?.is_some();
        let reading = reading.unwrap_or_default();
        let most = self.reads_up_to(reading.max_seq_length)?;
        let most = of_sentences.then_some(most);
        let refused = |file, reason: String| FolderError::Sentences { file, reason };
        let default = prompts.default_prompt_name;
        let prompts = prompts.prompts.unwrap_or_default();
        if prompts.len() > MOST || prompts.values().flatten().any(|prompt| prompt.len() > LONGEST) {
            return Err(refused(PROMPTS, format!("more than {MOST} prompts, or one of more than {LONGEST} bytes")));
        }
        let prompts: BTreeMap<String, String> =
            prompts.into_iter().map(|(name, prompt)| (name, prompt.unwrap_or_default())).collect();
        if let Some(name) = default.as_ref().filter(|name| !prompts.contains_key(*name)) {
            return Err(refused(PROMPTS, format!("its default_prompt_name {name:?} is none of its prompts")));
        }
        let pooled: Pooled = self.read_as(super::POOLING)?.unwrap_or_default();
        if pooled.include_prompt == Some(false) && prompts.values().any(|prompt| !prompt.is_empty()) {
            let reason = "include_prompt is false: tokens of prompts are pooled here like all others".to_owned();
            return Err(refused(super::POOLING, reason));
        }
        let lower = reading.do_lower_case.unwrap_or(false);
        Ok(Sentences { tokenizer: self.tokenizer().clone(), most, lower, prompts, default })
    }

    /// Tokens after which texts are cut: so many, or where none are said those of its tokenizer; never more than its
    /// context.
    pub(super) fn reads_up_to(&self, said: Option<u32>) -> Result<usize, FolderError> {
        let stated: Stated = self.read_as("tokenizer_config.json")?.unwrap_or_default();
        let context = self.architecture().context;
        let known = said.map(f64::from).or(stated.model_max_length).filter(|most| *most >= 1.0);
        // SAFETY of the cast: it saturates.
        Ok(known.map_or(context, |most| context.min(most as u32)) as usize)
    }

    /// What a file says of how texts are read, if there is one.
    pub(super) fn read_as<T: serde::de::DeserializeOwned>(&self, file: &'static str) -> Result<Option<T>, FolderError> {
        let json = self.small.optional(file, MAX_JSON)?;
        let read = json.map(|json| serde_json::from_slice(&json)).transpose();
        read.map_err(|error| FolderError::Sentences { file, reason: error.to_string() })
    }
}

impl Sentences {
    /// The tokens that are read of a text after the prompt of a name, or after the default one.
    ///
    /// # Errors
    /// [`TokenizerError::Prompt`] for a name of no prompt; as [`TextTokenizer::encode`], but that a model with a length
    /// of its own reads no further and refuses nothing longer.
    pub fn encode(&self, text: &str, prompt: Option<&str>) -> Result<Vec<u32>, TokenizerError> {
        let prompt = match prompt.or(self.default.as_deref()) {
            Some(name) => self.prompts.get(name).ok_or_else(|| TokenizerError::Prompt(self.names()))?,
            None => "",
        };
        let mut text = format!("{prompt}{text}");
        if self.lower {
            text = text.to_lowercase();
        }
        match self.most {
            Some(most) => self.tokenizer.encode_read(&text, most),
            None => self.tokenizer.encode(&text),
        }
    }

    fn names(&self) -> Vec<String> {
        self.prompts.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};
    use tempfile::TempDir;
    use tensorlink_model::Family;
    use tensorlink_model::fixture::{CONTEXT, Folder};

    use super::super::fixture::written;
    use super::*;

    fn folder(files: &[(&str, Value)]) -> TempDir {
        let dir = written(&Folder::new(Family::Bert));
        fs::create_dir(dir.path().join("1_Pooling")).unwrap();
        for (name, content) in files {
            fs::write(dir.path().join(name), content.to_string()).unwrap();
        }
        dir
    }

    fn sentences(files: &[(&str, Value)]) -> Result<Sentences, FolderError> {
        ModelFolder::open(folder(files).path()).unwrap().sentences()
    }

    #[test]
    fn texts_are_read_as_far_as_the_folder_says() {
        let long = ["cat"; 3 * CONTEXT].join(" ");
        let modules = json!([{"type": "sentence_transformers.models.Transformer"}]);
        let read = |files: &[(&str, Value)]| sentences(files).unwrap().encode(&long, None);
        for (files, tokens) in [
            (vec![(READING[0], json!({"max_seq_length": 6, "do_lower_case": false}))], 6),
            (vec![(READING[1], json!({"max_seq_length": 5})), ("modules.json", modules.clone())], 5),
            (vec![(READING[0], json!({"max_seq_length": 512}))], CONTEXT),
            (vec![(READING[0], json!({"max_seq_length": null})), ("modules.json", modules.clone())], CONTEXT),
            (vec![("modules.json", modules.clone()), ("tokenizer_config.json", json!({"model_max_length": 7}))], 7),
            (vec![("modules.json", modules), ("tokenizer_config.json", json!({"model_max_length": 1e30}))], CONTEXT),
        ] {
            let ids = read(&files).unwrap();
            // What ends a text stays at its end.
            assert_eq!((ids.len(), ids[0], ids[ids.len() - 1]), (tokens, 0, 2), "{files:?}");
        }
        // Without any of these files nothing is cut.
        assert!(matches!(read(&[]), Err(TokenizerError::Context { .. })));
        assert!(matches!(
            read(&[("tokenizer_config.json", json!({"model_max_length": 7}))]),
            Err(TokenizerError::Context { .. })
        ));
    }

    #[test]
    fn prompts_come_before_texts_by_name_or_default() {
        let prompts = json!({"query": "the dog ", "document": "", "none": null});
        let given = |default: Value| {
            sentences(&[(
                PROMPTS,
                json!({"prompts": prompts, "default_prompt_name": default, "similarity_fn_name": "cosine"}),
            )])
        };
        let (without, with) = (given(Value::Null).unwrap(), given("query".into()).unwrap());
        let (plain, after) = (vec![0, 5, 2], vec![0, 4, 6, 5, 2]);
        for (sentences, name, ids) in [
            (&without, None, &plain),
            (&without, Some("query"), &after),
            (&without, Some("document"), &plain),
            (&with, None, &after),
            (&with, Some("none"), &plain),
        ] {
            assert_eq!(&sentences.encode("cat", name).unwrap(), ids, "{name:?}");
        }
        let error = with.encode("cat", Some("passage")).unwrap_err();
        assert_eq!(error, TokenizerError::Prompt(["document", "none", "query"].map(String::from).into()));
        assert!(matches!(given("passage".into()), Err(FolderError::Sentences { file: PROMPTS, .. })));
        assert!(matches!(sentences(&[(PROMPTS, json!([]))]), Err(FolderError::Sentences { .. })));
    }

    #[test]
    fn letters_are_made_small_where_the_folder_says_so() {
        let lower = |value: bool| sentences(&[(READING[0], json!({"do_lower_case": value}))]).unwrap();
        assert_eq!(lower(true).encode("CAT", None).unwrap(), [0, 5, 2]);
        assert_eq!(lower(false).encode("CAT", None).unwrap(), [0, 3, 2]);
    }

    #[test]
    fn prompts_that_are_not_pooled_are_refused_by_name() {
        let pooling = (super::super::POOLING, json!({"pooling_mode_mean_tokens": true, "include_prompt": false}));
        assert!(sentences(&[pooling.clone(), (PROMPTS, json!({"prompts": {"query": ""}}))]).is_ok());
        let error = sentences(&[pooling, (PROMPTS, json!({"prompts": {"query": "q: "}}))]).unwrap_err();
        assert!(error.to_string().contains("include_prompt"), "{error}");
    }
}
