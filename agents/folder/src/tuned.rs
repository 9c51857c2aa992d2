//! A model of a folder that was trained on: the same folder with other weights. And adapters to it, in a folder as
//! Hugging Face's PEFT has them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use tensorlink_model::lora::{Lora, peft};
use tensorlink_model::{Architecture, ConfigError, ExportError, Matrix, Output, Weights, classifier, export};

use super::modules::MODULES;
use super::small::required;
use super::unfinished::Unfinished;
use super::{FolderError, MAX_JSON, ModelFolder, SMALL, WEIGHTS};

/// Largest file of adapters, bytes.
const MAX_ADAPTERS: u64 = 1 << 32;
/// The file that is written anew.
const CONFIG: &str = "config.json";

/// The folder that a model was trained on from, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Tuned<'a> {
    /// The folder.
    pub folder: &'a ModelFolder,
    /// The model; beside the folder's, its head may have weights of its own.
    pub architecture: &'a Architecture,
    /// Its weights.
    pub weights: &'a Weights,
    /// Names of the classes that it tells texts apart by, if it does.
    pub classes: &'a [String],
}

impl Tuned<'_> {
    /// Writes a new folder `out`.
    ///
    /// # Errors
    /// [`FolderError::Exists`], [`FolderError::Export`], [`FolderError::Read`], [`FolderError::Write`]; then there is
    /// no `out`.
    pub fn write(&self, out: &Path) -> Result<(), FolderError> {
        let new = Unfinished::begin(out)?;
        let weights = export::safetensors(self.architecture, self.weights)?;
        new.write_all([(CONFIG, self.config()?), (WEIGHTS, weights)])?;
        let classified = matches!(self.architecture.output, Output::Classes(_));
        // What makes vectors of texts makes no classes of them.
        let copied = |name: &str| name != CONFIG && !(classified && name == MODULES);
        for (name, most) in SMALL.into_iter().filter(|(name, _)| copied(name)) {
            if let Some(content) = self.folder.small.optional(name, most)? {
                new.write_all([(name, content)])?;
            }
        }
        new.finish()
    }

    /// The folder's configuration, with what became of its output weights.
    fn config(&self) -> Result<Vec<u8>, FolderError> {
        let config = self.folder.small.required(CONFIG, MAX_JSON)?;
        let mut config: Value = serde_json::from_slice(&config).map_err(|error| {
            let message = error.to_string();
            ConfigError::Syntax { file: CONFIG, message }
        })?;
        if let Some(config) = config.as_object_mut() {
            export::text_alone(config);
            config.insert("torch_dtype".to_owned(), "float32".into());
            match self.architecture.output {
                Output::Classes(_) => self.classified(config)?,
                output => {
                    let tied = output == (Output::Logits { tied: true });
                    config.insert("tie_word_embeddings".to_owned(), tied.into());
                }
            }
        }
        Ok(export::json(&config)?)
    }

    /// Makes a configuration that of a model with classes. Its texts are all first ones: of the vectors of text types,
    /// one is left.
    fn classified(&self, config: &mut Map<String, Value>) -> Result<(), FolderError> {
        let family = self.architecture.family;
        let class = classifier(config.get("model_type").and_then(Value::as_str), family);
        let class = class.ok_or_else(|| ExportError::Unsaid(format!("{family:?}").to_lowercase()))?;
        config.insert("architectures".to_owned(), [class].into());
        config.insert("type_vocab_size".to_owned(), u32::from(self.architecture.token_types).into());
        config.extend(export::classes_of(self.classes));
        Ok(())
    }
}

/// Adapters to the model of a folder.
#[derive(Clone, Debug)]
pub struct Adapters {
    /// Which projections have one.
    pub lora: Lora,
    /// A and B of each.
    pub matrices: BTreeMap<String, Matrix>,
}

impl Adapters {
    /// Reads a folder of adapters to a model.
    ///
    /// # Errors
    /// [`FolderError::Absent`], [`FolderError::Read`], and [`FolderError::Adapters`] for another model's, or of
    /// another kind.
    pub fn open(folder: &Path, architecture: &Architecture) -> Result<Self, FolderError> {
        let [config, model] = peft::FILES;
        let (config, model) = (required(folder, config, MAX_JSON)?, required(folder, model, MAX_ADAPTERS)?);
        let (lora, matrices) = peft::read(architecture, &config, &model)?;
        Ok(Self { lora, matrices })
    }

    /// Writes a new folder `out`; `base` is where PEFT looks for the model.
    ///
    /// # Errors
    /// [`FolderError::Exists`], [`FolderError::Export`], [`FolderError::Write`]; then there is no `out`.
    pub fn write(&self, architecture: &Architecture, base: &Path, out: &Path) -> Result<(), FolderError> {
        let new = Unfinished::begin(out)?;
        let [config, model] = peft::FILES;
        new.write_all([
            (config, peft::config(&self.lora, architecture, &base.display().to_string())?),
            (model, peft::safetensors(&self.lora, architecture, &self.matrices)?),
        ])?;
        new.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tensorlink_model::Family;
    use tensorlink_model::fixture::Folder;
    use tensorlink_model::lora::Target;
    use tensorlink_model::random;

    use super::super::fixture::written;
    use super::*;

    #[test]
    fn a_tuned_model_is_its_folder_with_other_weights() {
        for family in [Family::Gpt2, Family::Llama, Family::Qwen2, Family::Gemma3] {
            let dir = written(&Folder::new(family));
            let folder = ModelFolder::open(dir.path()).unwrap();
            for tied in [true, false] {
                let architecture = Architecture { output: Output::Logits { tied }, ..folder.architecture().clone() };
                let weights = random::weights(&architecture, 5).unwrap();
                let out = dir.path().join(format!("tuned-{tied}"));
                Tuned { folder: &folder, architecture: &architecture, weights: &weights, classes: &[] }
                    .write(&out)
                    .unwrap();
                let tuned = ModelFolder::open(&out).unwrap();
                assert_eq!(tuned.architecture(), &architecture, "{family:?}");
                assert!(tuned.weights().unwrap() == weights, "{family:?}");
                assert_eq!(tuned.tokenizer().encode("the cat").unwrap(), folder.tokenizer().encode("the cat").unwrap());
            }
        }
    }

    #[test]
    fn a_tuned_model_that_took_images_is_its_text() {
        let mut model = Folder::new(Family::Gemma3);
        let text = model.config.clone();
        model.config = Map::from_iter([
            ("model_type".to_owned(), "gemma3".into()),
            ("architectures".to_owned(), ["Gemma3ForConditionalGeneration"].into()),
            ("eos_token_id".to_owned(), [2, 3].into()),
            ("text_config".to_owned(), text.into_iter().filter(|(field, _)| field != "eos_token_id").collect()),
        ]);
        let dir = written(&model);
        let folder = ModelFolder::open(dir.path()).unwrap();
        let (architecture, weights) = (folder.architecture(), folder.weights().unwrap());
        let out = dir.path().join("tuned");
        Tuned { folder: &folder, architecture, weights: &weights, classes: &[] }.write(&out).unwrap();
        let config: Value = serde_json::from_slice(&fs::read(out.join("config.json")).unwrap()).unwrap();
        assert_eq!(config["architectures"], serde_json::json!(["Gemma3ForCausalLM"]));
        let tuned = ModelFolder::open(&out).unwrap();
        assert_eq!((tuned.architecture(), tuned.ends().unwrap()), (architecture, vec![2, 3]));
        assert!(tuned.weights().unwrap() == weights);
    }

    #[test]
    fn adapters_come_back_from_their_folder() {
        for (family, targets) in
            [(Family::Gpt2, vec![Target::Output, Target::Down]), (Family::Llama, Target::ALL.to_vec())]
        {
            let dir = written(&Folder::new(family));
            let folder = ModelFolder::open(dir.path()).unwrap();
            let architecture = folder.architecture();
            let lora = Lora { rank: 2, alpha: 3, targets: targets.into_iter().collect() };
            let parameters = lora.parameters(architecture);
            let grown = lora.grown(architecture, 1);
            let matrix = |p: &tensorlink_model::Parameter| {
                (p.name.clone(), Matrix::new(p.rows, p.columns, grown[&p.name].clone()).unwrap())
            };
            let adapters = Adapters { lora, matrices: parameters.iter().map(matrix).collect() };
            let out = dir.path().join("adapters");
            adapters.write(architecture, dir.path(), &out).unwrap();
            let read = Adapters::open(&out, architecture).unwrap();
            assert_eq!((&read.lora, &read.matrices), (&adapters.lora, &adapters.matrices));
            assert!(matches!(adapters.write(architecture, dir.path(), &out), Err(FolderError::Exists(_))));

            let other = ModelFolder::open(written(&Folder::new(Family::Bert)).path()).unwrap();
            assert!(matches!(Adapters::open(&out, other.architecture()), Err(FolderError::Adapters(_))));
            fs::remove_file(out.join("adapter_model.safetensors")).unwrap();
            assert!(matches!(Adapters::open(&out, architecture), Err(FolderError::Absent { .. })));
        }
    }
}
