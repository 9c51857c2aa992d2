//! How a model that scores pairs of texts reads them, as the cross encoders of sentence-transformers do; and what the
//! numbers of a model with labels are to people.

use serde::Deserialize;
use tensorlink_model::Output;

use super::{FolderError, ModelFolder, TextTokenizer, TokenizerError};

/// Where a folder says what becomes of a score.
const CONFIG: &str = "config.json";

/// What of [`CONFIG`] matters here: the full name of a class, in its two spellings; how classes are to be told apart.
#[derive(Deserialize, Default)]
struct Stated {
    #[serde(default)]
    sentence_transformers: Option<CrossEncoder>,
    sbert_ce_default_activation_function: Option<String>,
    problem_type: Option<String>,
}

#[derive(Deserialize)]
struct CrossEncoder {
    activation_fn: Option<String>,
}

/// How pairs of texts become tokens.
#[derive(Clone, Debug)]
pub struct Pairs {
    tokenizer: TextTokenizer,
    /// Tokens of a pair after which its texts are cut, the longer one first.
    most: usize,
    /// What is added to the number of a token of the second text.
    second: u32,
    sigmoid: bool,
}

impl ModelFolder {
    /// How it reads pairs of texts, if it is a model that scores them.
    ///
    /// # Errors
    /// [`FolderError::Sentences`], or a file that cannot be read.
    pub fn pairs(&self) -> Result<Option<Pairs>, FolderError> {
        let a = self.architecture();
        if a.output != Output::Classes(1) {
            return Ok(None);
        }
        let most = self.reads_up_to(None)?;
        let second = a.token_numbers().saturating_sub(a.vocabulary);
        let stated: Stated = self.read_as(CONFIG)?.unwrap_or_default();
        let named = stated.sentence_transformers.and_then(|of| of.activation_fn);
        let class = named.or(stated.sbert_ce_default_activation_function);
        let sigmoid = match class.as_deref().and_then(|name| name.rsplit('.').next()) {
            None | Some("Sigmoid") => true,
            Some("Identity") => false,
            Some(other) => {
                let reason = format!("its scores go through {other}, supported are Sigmoid and Identity");
                return Err(FolderError::Sentences { file: CONFIG, reason });
            }
        };
        Ok(Some(Pairs { tokenizer: self.tokenizer().clone(), most, second, sigmoid }))
    }

    /// Whether a text may be of several of its classes.
    ///
    /// # Errors
    /// [`FolderError::Sentences`], or a file that cannot be read.
    pub fn several_classes(&self) -> Result<bool, FolderError> {
        let stated: Stated = self.read_as(CONFIG)?.unwrap_or_default();
        Ok(stated.problem_type.as_deref() == Some("multi_label_classification"))
    }
}

impl Pairs {
    /// The tokens that are read of a query and a document; what is too long of the longer one is cut.
    ///
    /// # Errors
    /// [`TokenizerError::Text`], [`TokenizerError::Context`] where a pair of nothing is too long.
    pub fn encode(&self, query: &str, document: &str) -> Result<Vec<u32>, TokenizerError> {
        let pair = self.tokenizer.encode_pair((query, document), self.most)?;
        Ok(pair.into_iter().map(|(id, text)| if text == 0 { id } else { id.saturating_add(self.second) }).collect())
    }

    /// Whether people are told the logistic of a score, `1 / (1 + e^−x)`, not the score itself.
    pub const fn sigmoid(&self) -> bool {
        self.sigmoid
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};
    use tempfile::TempDir;
    use tensorlink_model::Family;
    use tensorlink_model::fixture::{CONTEXT, Folder, VOCABULARY};

    use super::super::fixture::{reranker, written};
    use super::*;

    fn opened(dir: &TempDir) -> Pairs {
        ModelFolder::open(dir.path()).unwrap().pairs().unwrap().unwrap()
    }

    #[test]
    fn tokens_of_the_second_text_are_numbered_beyond_the_vocabulary() {
        let words = VOCABULARY as u32;
        let pairs = opened(&reranker(Family::Bert));
        assert_eq!(pairs.encode("the cat", "dog").unwrap(), [0, 4, 5, 2, 6 + words, 2 + words]);
        assert_eq!(pairs.encode("", "").unwrap(), [0, 2, 2 + words]);
        // RoBERTa has one vector for all texts.
        assert_eq!(opened(&reranker(Family::Roberta)).encode("the cat", "dog").unwrap(), [0, 4, 5, 2, 6, 2]);
        assert!(ModelFolder::open(written(&Folder::new(Family::Bert)).path()).unwrap().pairs().unwrap().is_none());
    }

    #[test]
    fn the_longer_text_is_cut_first() {
        let dir = reranker(Family::Bert);
        let (long, pairs) = (["cat"; 30].join(" "), opened(&dir));
        let lengths = |query: &str, document: &str| {
            let ids = pairs.encode(query, document).unwrap();
            let second = ids.iter().filter(|id| **id >= VOCABULARY as u32).count();
            (ids.len() - second, second)
        };
        assert_eq!(lengths("the dog", &long), (4, CONTEXT - 4));
        assert_eq!(lengths(&long, "the dog"), (CONTEXT - 3, 3));
        let (query, document) = lengths(&long, &long);
        assert!(query + document == CONTEXT && query.abs_diff(document) <= 2, "{query}, {document}");
        fs::write(dir.path().join("tokenizer_config.json"), json!({ "model_max_length": 7 }).to_string()).unwrap();
        assert_eq!(opened(&dir).encode("the dog", &long).unwrap().len(), 7);
    }

    #[test]
    fn scores_are_told_as_the_folder_says() {
        let stated = |field: &str, value: Value| {
            let dir = reranker(Family::Bert);
            let path = dir.path().join(CONFIG);
            let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            config[field] = value;
            fs::write(path, config.to_string()).unwrap();
            ModelFolder::open(dir.path()).unwrap().pairs().map(|pairs| pairs.unwrap().sigmoid())
        };
        let (new, old) = ("sentence_transformers", "sbert_ce_default_activation_function");
        let (identity, sigmoid) = ("torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid");
        for (field, value, due) in [
            (new, Value::Null, true),
            (new, json!({ "version": "5.0.0" }), true),
            (new, json!({ "activation_fn": identity }), false),
            (new, json!({ "activation_fn": sigmoid }), true),
            (old, identity.into(), false),
        ] {
            assert_eq!(stated(field, value.clone()).unwrap(), due, "{field}: {value}");
        }
        let error = stated(old, "torch.nn.modules.activation.Tanh".into()).unwrap_err().to_string();
        assert!(error.contains("config.json") && error.contains("Tanh"), "{error}");
    }
}
