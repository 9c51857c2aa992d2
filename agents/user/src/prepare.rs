//! From a model file and a data set to the programs and states of a job. No network, no chain.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tensorlink_model::partition::PartitionError;
use tensorlink_model::{Architecture, Description, Lora, Output, Weights, random};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;
use tensorlink_training::calibrate::{CalibrateError, Calibration, LEAST_STEPS};
use tensorlink_training::data::Census;
use tensorlink_training::data::labelled::{LabelledTexts, TokenTexts};
use tensorlink_training::data::text::{Text, Tokens};
use tensorlink_training::init::{self, InitError};
use tensorlink_training::model::{Decoder, Encoder, Imported, WeightsError, weights};
use tensorlink_training::start::LanguageError;
use tensorlink_training::step::language::Untrainable;
use tensorlink_training::{
    CompileError, CompiledStage, DataError, Dataset, LanguageModel, Model, ModelError, Table, Training, TrainingSet,
};
use thiserror::Error;

/// Most steps of calibration; the largest values come early.
const CALIBRATION: u32 = 400;
/// The same of a language model, whose steps take longer.
const LANGUAGE_CALIBRATION: u32 = 12;

/// Why a job cannot be formed from these files.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant says it")]
pub enum PrepareError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error(transparent)]
    Calibrate(#[from] CalibrateError),
    #[error(transparent)]
    Partition(#[from] PartitionError),
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error(transparent)]
    Init(#[from] InitError),
    #[error(transparent)]
    Language(#[from] LanguageError),
    #[error("the data has {0} classes or columns, more than a model can have")]
    TooWide(usize),
}

/// A trained model that another goes on from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// Its folder on the user's machine.
    pub folder: PathBuf,
    /// Adapters, if they are trained in place of its weights.
    pub lora: Option<Lora>,
}

/// A model with its data, not yet cut.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The model's name.
    pub name: String,
    /// Steps of training.
    pub steps: u32,
    /// The data, split and in integers.
    pub data: Dataset,
    /// What they hold; none of a text that goes on.
    pub census: Option<Census>,
    /// What is trained.
    pub training: Training,
    /// Of a language model: what it is, and is exported as.
    pub architecture: Option<Architecture>,
    /// Of one that was trained before: what it goes on from.
    pub base: Option<Base>,
    /// Of an encoder made from scratch: what its tokens are.
    pub tokens: Vec<String>,
    /// Keys the draws of calibration.
    seed: u64,
    /// Steps of calibration.
    calibration: u32,
}

/// A job ready to be published.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Programs with their constants, stage by stage.
    pub stages: Vec<CompiledStage>,
    /// Initial states, stage by stage.
    pub states: Vec<Vec<Tensor>>,
    /// Exponents and the losses of the float run they come from.
    pub calibration: Calibration,
    /// What a step with all of its sequences takes on this machine, as far as the float run tells.
    pub step: Duration,
}

impl Draft {
    /// Reads a model and its data: `weights` are the bytes of the safetensors file that the model names, if it
    /// names one.
    ///
    /// # Errors
    /// [`PrepareError`] naming the file and the place.
    pub fn new(model: &Model, csv: &[u8], weights_file: Option<(&str, &[u8])>) -> Result<Self, PrepareError> {
        let table = Table::parse(csv)?;
        let network = model.network(narrow(table.width)?, narrow(table.classes.len())?)?;
        let data = table.split(model.operand_bits(), model.seed())?;
        let weights = match weights_file {
            Some((name, bytes)) => weights::import(name, bytes, &network)?,
            None => init::gaussian(&network, model.seed()),
        };
        let training = Training::of_network(&network, &weights, rows(&data)?);
        let (name, steps) = (model.name().to_owned(), model.steps());
        let calibration = steps.clamp(LEAST_STEPS, CALIBRATION);
        let (architecture, base, tokens, seed) = (None, None, Vec::new(), model.seed());
        let census = Some(table.census());
        Ok(Self { name, steps, data, census, training, architecture, base, tokens, seed, calibration })
    }

    /// A decoder made from scratch, and its text.
    ///
    /// # Errors
    /// [`PrepareError`] naming what is wrong.
    pub fn language(model: &LanguageModel, decoder: &Decoder, text: &[u8]) -> Result<Self, PrepareError> {
        let data = Text::parse(text)?.split(model.context())?;
        let characters = narrow(data.classes.len())?;
        let training = Training::of_language(model, decoder, characters, rows(&data)?)?;
        let architecture = decoder.architecture(characters);
        Ok(Self::of(model, data, training, (architecture, None)))
    }

    /// A model of a folder, with its weights, and a text in its tokens.
    ///
    /// # Errors
    /// [`PrepareError`] naming what is wrong.
    pub fn imported(
        model: &LanguageModel,
        imported: &Imported,
        (folder, architecture, weights): (&Path, &Architecture, &Weights),
        ids: Vec<u32>,
    ) -> Result<Self, PrepareError> {
        let data = Tokens { ids, vocabulary: architecture.vocabulary }.split(model.context())?;
        let training = Training::of_imported(model, imported, (architecture, weights), rows(&data)?)?;
        let base = Base { folder: folder.to_owned(), lora: imported.lora.clone() };
        Ok(Self::of(model, data, training, (imported.architecture(architecture), Some(base))))
    }

    /// An encoder made from scratch, and its labelled texts, character by character.
    ///
    /// # Errors
    /// [`PrepareError`] naming what is wrong.
    pub fn encoder(model: &LanguageModel, encoder: &Encoder, csv: &[u8]) -> Result<Self, PrepareError> {
        let texts = LabelledTexts::parse(csv)?;
        let (ids, tokens) = texts.characters()?;
        let architecture = encoder.architecture(ids.vocabulary, narrow(texts.classes.len())?);
        let weights = random::weights(&architecture, model.seed()).map_err(LanguageError::from)?;
        let draft = Self::classifier(model, (architecture, &weights), (&texts, &ids), None)?;
        Ok(Self { tokens, ..draft })
    }

    /// The encoder of a folder, with its weights, and labelled texts in its tokens. A pooler and a head that the folder
    /// does not have are drawn by the model's seed.
    ///
    /// # Errors
    /// [`PrepareError`] naming what is wrong.
    pub fn imported_encoder(
        model: &LanguageModel,
        imported: &Imported,
        (folder, description, weights): (&Path, &Description, Weights),
        (texts, ids): (&LabelledTexts, Vec<Vec<u32>>),
    ) -> Result<Self, PrepareError> {
        if imported.lora.is_some() {
            return Err(LanguageError::from(Untrainable::Part("an adapter to an encoder")).into());
        }
        let output = Output::Classes(narrow(texts.classes.len())?);
        // No vector is made of a text that has classes.
        let architecture = Architecture { output, dense: Vec::new(), ..description.architecture.clone() };
        let weights = random::completed(&architecture, weights.into_matrices(), model.seed());
        let weights = weights.map_err(LanguageError::from)?;
        let ids = TokenTexts { ids, vocabulary: architecture.vocabulary, padding: description.padding };
        let base = Base { folder: folder.to_owned(), lora: None };
        Self::classifier(model, (architecture, &weights), (texts, &ids), Some(base))
    }

    fn classifier(
        model: &LanguageModel,
        (architecture, weights): (Architecture, &Weights),
        (texts, ids): (&LabelledTexts, &TokenTexts),
        base: Option<Base>,
    ) -> Result<Self, PrepareError> {
        let data = texts.split(ids, model.context(), model.seed())?;
        let training = Training::of_encoder(model, (&architecture, weights), ids.padding, rows(&data)?)?;
        Ok(Self { census: Some(texts.census()), ..Self::of(model, data, training, (architecture, base)) })
    }

    fn of(
        model: &LanguageModel,
        data: Dataset,
        training: Training,
        (architecture, base): (Architecture, Option<Base>),
    ) -> Self {
        let (name, steps) = (model.name().to_owned(), model.steps());
        let calibration = steps.clamp(LEAST_STEPS, LANGUAGE_CALIBRATION);
        let (architecture, tokens, seed) = (Some(architecture), Vec::new(), model.seed());
        Self { name, steps, data, census: None, training, architecture, base, tokens, seed, calibration }
    }

    /// The same, each step's sequences in so many shares, each with all of the model.
    ///
    /// # Errors
    /// [`PrepareError::Language`] for more than one of what is no language model, or has fewer sequences.
    pub fn shared(self, shares: u16) -> Result<Self, PrepareError> {
        Ok(if shares == 1 { self } else { Self { training: self.training.shared(shares)?, ..self } })
    }

    /// The model's seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Cuts the model for workers of these memories (bytes), in their order: one range of layers for each stage of
    /// a share.
    ///
    /// # Errors
    /// [`PrepareError::Partition`].
    pub fn cut(&self, memories: &[u64]) -> Result<Vec<Range<usize>>, PrepareError> {
        let (rows, stages) = (&self.data.training, memories.len().checked_div(self.training.shares().into()));
        // The first stage of a share has the rows, the last has their classes.
        let (first, last) = (rows.features.ty().byte_len(), rows.labels.ty().byte_len());
        let beside_data = |(stage, memory): (usize, &u64)| {
            let place = stages.and_then(|stages| stage.checked_rem(stages).map(|place| (place, stages)));
            let Some((place, stages)) = place else { return *memory };
            let rows = if place == 0 { first } else { 0 };
            let classes = if place.saturating_add(1) == stages { last } else { 0 };
            memory.saturating_sub(rows).saturating_sub(classes)
        };
        let memories: Vec<u64> = memories.iter().enumerate().map(beside_data).collect();
        Ok(self.training.cut(&memories)?)
    }

    /// Calibrates and compiles. `calibrate` takes the training, its data, steps and the key of its draws:
    /// [`Training::calibrate`], or what comes to the same in less time.
    ///
    /// # Errors
    /// [`PrepareError`].
    pub fn compile(
        &self,
        ranges: &[Range<usize>],
        calibrate: impl FnOnce(&Training, &TrainingSet, u32, u64) -> Result<Calibration, CalibrateError>,
    ) -> Result<Prepared, PrepareError> {
        let training = &self.training;
        let began = Instant::now();
        let calibration = calibrate(training, &self.data.training, self.calibration, self.seed)?;
        let step = began.elapsed().mul_f64(training.growth() / f64::from(self.calibration.max(1)));
        let stages = training.compile(&calibration, &self.data.training, ranges, tensor_root)?;
        let states = stages.iter().map(|s| init::state(&s.program, &training.state)).collect::<Result<_, _>>()?;
        Ok(Prepared { stages, states, calibration, step })
    }
}

fn narrow(n: usize) -> Result<u32, PrepareError> {
    u32::try_from(n).map_err(|_| PrepareError::TooWide(n))
}

/// Rows to train on.
fn rows(data: &Dataset) -> Result<u32, PrepareError> {
    narrow(data.training.features.ty().dims().first().map_or(0, |rows| *rows as usize))
}

#[cfg(test)]
mod tests {
    use tensorlink_training::model::language::Origin;

    use super::*;

    /// Before a single step, no moment has a magnitude that an exponent could be made from.
    #[test]
    fn a_job_of_one_step_is_calibrated_by_more() {
        let json = r#"{ "name": "small", "decoder": { "width": 16, "layers": 1, "heads": 2, "hidden": 24, "context": 8 },
            "optimizer": { "learning_rate": 0.003, "warmup": 0, "weight_decay": 0.1, "clip": 1.0 },
            "sequences": 2, "steps": 1, "operand_bits": 8, "seed": 7 }"#;
        let model = LanguageModel::parse("m.json", json.as_bytes()).unwrap();
        let Origin::Decoder(decoder) = model.origin() else { panic!("{:?}", model.origin()) };
        let draft = Draft::language(&model, decoder, "In the beginning God created. ".repeat(8).as_bytes()).unwrap();
        let ranges = draft.cut(&[1 << 30; 2]).unwrap();
        let prepared = draft.compile(&ranges, Training::calibrate).unwrap();
        assert!(prepared.stages.len() == 2 && prepared.step > Duration::ZERO);
    }
}
