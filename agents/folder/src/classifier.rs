//! An encoder that was trained here to tell classes of texts apart, as a folder of its own for Hugging Face's loaders.

use std::path::Path;

use serde_json::{Value, json};
use tensorlink_model::{Architecture, Weights, export};
use tensorlink_training::data::labelled::{PADDING, SPECIAL};

use super::trained::{tokenizer, tokenizer_config};
use super::unfinished::Unfinished;
use super::{CALIBRATION, FolderError, WEIGHTS};

/// What the folder is made of.
#[derive(Clone, Copy, Debug)]
pub struct Classifier<'a> {
    /// The model.
    pub architecture: &'a Architecture,
    /// Its weights.
    pub weights: &'a Weights,
    /// What its tokens are, in the order of their numbers: [`SPECIAL`] ones, then characters.
    pub tokens: &'a [String],
    /// Names of its classes, in the order of their numbers.
    pub classes: &'a [String],
    /// Some texts to calibrate its integers on.
    pub texts: &'a [String],
}

impl Classifier<'_> {
    /// Writes a new folder `out`.
    ///
    /// # Errors
    /// [`FolderError::Exists`], [`FolderError::Export`], [`FolderError::Write`]; then there is no `out`.
    pub fn write(&self, out: &Path) -> Result<(), FolderError> {
        let new = Unfinished::begin(out)?;
        new.write_all([
            ("config.json", export::classifier_config(self.architecture, self.classes)?),
            (WEIGHTS, export::safetensors(self.architecture, self.weights)?),
            (CALIBRATION, export::json(&self.texts)?),
            ("tokenizer.json", export::json(&beginning(tokenizer(self.tokens)))?),
            ("tokenizer_config.json", export::json(&padded(tokenizer_config(self.architecture.context)))?),
        ])?;
        new.finish()
    }
}

/// A tokenizer of characters, with the token that begins each text.
fn beginning(tokenizer: Value) -> Value {
    let special = |(content, id): (&str, u32)| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                "special": true })
    };
    let [_, first] = SPECIAL;
    let (begin, text) =
        (json!({ "SpecialToken": { "id": first, "type_id": 0 } }), json!({ "Sequence": { "id": "A", "type_id": 0 } }));
    let added = SPECIAL.into_iter().zip(PADDING..).map(special).collect();
    let around = json!({
        "type": "TemplateProcessing",
        "single": [begin, text],
        "pair": [begin, text, { "Sequence": { "id": "B", "type_id": 0 } }],
        "special_tokens": { first: { "id": first, "ids": [PADDING + 1], "tokens": [first] } },
    });
    with(tokenizer, [("added_tokens", added), ("post_processor", around)])
}

fn padded(config: Value) -> Value {
    let [padding, first] = SPECIAL;
    with(config, [("pad_token", padding.into()), ("cls_token", first.into())])
}

/// An object with these fields, whatever they were.
fn with(mut object: Value, fields: [(&str, Value); 2]) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }
    object
}

#[cfg(test)]
mod tests {
    use tensorlink_model::Setting;
    use tensorlink_model::random::weights;
    use tensorlink_training::data::labelled::LabelledTexts;
    use tensorlink_training::model::Encoder;

    use super::super::ModelFolder;
    use super::super::fixture::integers;
    use super::*;

    #[test]
    fn a_folder_makes_the_tokens_that_were_learnt_from() {
        let data = LabelledTexts::parse("a pint,yes\n日!,no\n".as_bytes()).unwrap();
        let (ids, tokens) = data.characters().unwrap();
        let encoder = Encoder { width: 16, layers: 1, heads: 2, hidden: None, context: 6 };
        let architecture = encoder.architecture(ids.vocabulary, 2);
        let weights = weights(&architecture, 3).unwrap();
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("model");
        let classes = &data.classes;
        let texts = ["a pint".to_owned(), "日!".to_owned()];
        Classifier { architecture: &architecture, weights: &weights, tokens: &tokens, classes, texts: &texts }
            .write(&out)
            .unwrap();
        let folder = ModelFolder::open(&out).unwrap();
        assert_eq!(folder.calibration().unwrap().as_deref(), Some(&texts[..]));
        let exact = integers(&folder, Setting::Standard);
        assert_eq!(exact.architecture(), folder.architecture());
        assert!(folder.weights().unwrap() == weights);
        assert_eq!((folder.architecture(), &folder.description().classes), (&architecture, classes));
        let encode = |text: &str| folder.tokenizer().encode_cut(text, 6).unwrap();
        assert_eq!(encode("日!"), ids.ids[1]);
        assert_eq!(encode("a pint"), ids.ids[0][..6]);
    }
}
