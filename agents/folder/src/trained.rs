//! A decoder that was trained on text character by character, as a folder of its own: Hugging Face's loaders read it,
//! and so do all commands that take a model's folder.

use std::path::Path;

use serde_json::{Map, Value, json};
use tensorlink_model::{Architecture, Weights, export};

use super::unfinished::Unfinished;
use super::{CALIBRATION, FolderError, WEIGHTS};

/// What the folder is made of.
#[derive(Clone, Copy, Debug)]
pub struct Trained<'a> {
    /// The model.
    pub architecture: &'a Architecture,
    /// Its weights.
    pub weights: &'a Weights,
    /// The characters that its tokens are, in the order of their numbers.
    pub characters: &'a [String],
    /// Texts to choose the exponents of its integers by, of at most `context` of these characters each.
    pub texts: &'a [String],
}

impl Trained<'_> {
    /// Writes a new folder `out`.
    ///
    /// # Errors
    /// [`FolderError::Exists`], [`FolderError::Export`], [`FolderError::Write`]; then there is no `out`.
    pub fn write(&self, out: &Path) -> Result<(), FolderError> {
        let new = Unfinished::begin(out)?;
        new.write_all([
            ("config.json", export::config(self.architecture)?),
            (WEIGHTS, export::safetensors(self.architecture, self.weights)?),
            ("tokenizer.json", export::json(&tokenizer(self.characters))?),
            ("tokenizer_config.json", export::json(&tokenizer_config(self.architecture.context))?),
            (CALIBRATION, export::json(&self.texts)?),
        ])?;
        new.finish()
    }
}

/// `tokenizer.json` of a vocabulary of characters: each is a token, and tokens one after the other are the text again.
/// A character that is not among them is refused, as there is no token for it.
pub(super) fn tokenizer(characters: &[String]) -> Value {
    let vocabulary: Map<String, Value> =
        characters.iter().enumerate().map(|(id, character)| (character.clone(), id.into())).collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        // Whatever the character, line breaks among them.
        "pre_tokenizer": { "type": "Split", "pattern": { "Regex": "[\\s\\S]" }, "behavior": "Isolated", "invert": false },
        "post_processor": null,
        "decoder": { "type": "Fuse" },
        // The format asks for a word that stands for unknown ones; the vocabulary does not have it.
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>" },
    })
}

pub(super) fn tokenizer_config(context: u32) -> Value {
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "clean_up_tokenization_spaces": false,
    })
}

#[cfg(test)]
mod tests {
    use tensorlink_model::random::{Dimensions, llama, weights};

    use tensorlink_model::Setting;

    use super::super::fixture::integers;
    use super::super::{ModelFolder, TokenizerError};
    use super::*;

    const TEXT: &str = "\n !aeinpté日";

    fn written(out: &Path) -> Weights {
        let characters: Vec<String> = TEXT.chars().map(String::from).collect();
        let size = Dimensions { vocabulary: 11, width: 16, layers: 1, heads: 2, kv_heads: 1, hidden: 24, context: 40 };
        let architecture = llama(size);
        let weights = weights(&architecture, 3).unwrap();
        let texts = ["a pint\n".to_owned(), "日!".to_owned()];
        let trained =
            Trained { architecture: &architecture, weights: &weights, characters: &characters, texts: &texts };
        trained.write(out).unwrap();
        weights
    }

    #[test]
    fn a_trained_model_is_a_folder_like_any_other() {
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("model");
        let weights = written(&out);
        let folder = ModelFolder::open(&out).unwrap();
        assert!(folder.weights().unwrap() == weights);
        assert_eq!(folder.ends().unwrap(), [0; 0]);
        assert_eq!(folder.calibration().unwrap(), Some(vec!["a pint\n".to_owned(), "日!".to_owned()]));
        let exact = integers(&folder, Setting::Standard);
        assert_eq!(exact.architecture(), folder.architecture());
    }

    #[test]
    fn every_text_of_its_characters_comes_back() {
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("model");
        written(&out);
        let folder = ModelFolder::open(&out).unwrap();
        let tokenizer = folder.tokenizer();
        for text in [TEXT, "  a\n\n pint !", "pinté  ", "\n"] {
            let ids = tokenizer.encode(text).unwrap();
            assert_eq!(ids.len(), text.chars().count(), "{text:?}");
            assert_eq!(tokenizer.decode(&ids).unwrap(), text);
        }
        assert_eq!(tokenizer.encode("a cat"), Err(TokenizerError::Character('c')));
    }
}
