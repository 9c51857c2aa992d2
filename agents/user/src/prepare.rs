//! From a model file and a data set to the programs and states of a job. No network, no chain.

use std::ops::Range;

use tensorlink_graph::calibrate::{CalibrateError, Calibration};
use tensorlink_graph::data::text::Text;
use tensorlink_graph::init::{self, InitError};
use tensorlink_graph::model::{WeightsError, weights};
use tensorlink_graph::partition::{self, PartitionError};
use tensorlink_graph::training::LanguageError;
use tensorlink_graph::{
    CompileError, CompiledStage, DataError, Dataset, LanguageModel, Model, ModelError, Table, Training,
};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;
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

/// A model with its data, not yet cut.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The model's name.
    pub name: String,
    /// Steps of training.
    pub steps: u32,
    /// The data, split and in integers.
    pub data: Dataset,
    /// What is trained.
    pub training: Training,
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
}

impl Draft {
    /// Reads a model and its data: `weights` are the bytes of the safetensors file that the model names, if it names one.
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
        Ok(Self { name, steps, data, training, seed: model.seed(), calibration: steps.min(CALIBRATION) })
    }

    /// Reads a language model and its text.
    ///
    /// # Errors
    /// [`PrepareError`] naming what is wrong.
    pub fn language(model: &LanguageModel, text: &[u8]) -> Result<Self, PrepareError> {
        let data = Text::parse(text)?.split(model.context())?;
        let characters = narrow(data.classes.len())?;
        let training = Training::of_language(model, characters, rows(&data)?)?;
        let (name, steps) = (model.name().to_owned(), model.steps());
        Ok(Self { name, steps, data, training, seed: model.seed(), calibration: steps.min(LANGUAGE_CALIBRATION) })
    }

    /// Cuts the model for workers of these memories (bytes), in their order.
    ///
    /// # Errors
    /// [`PrepareError::Partition`].
    pub fn cut(&self, memories: &[u64]) -> Result<Vec<Range<usize>>, PrepareError> {
        let bytes: Vec<u64> = self.training.layers.iter().map(|layer| layer.bytes).collect();
        Ok(partition::partition(&bytes, memories)?)
    }

    /// Calibrates and compiles.
    ///
    /// # Errors
    /// [`PrepareError`].
    pub fn compile(&self, ranges: &[Range<usize>]) -> Result<Prepared, PrepareError> {
        let training = &self.training;
        let calibration = training.calibrate(&self.data.training, self.calibration, self.seed)?;
        let stages = training.compile(&calibration, &self.data.training, ranges, tensor_root)?;
        let states = stages.iter().map(|s| init::state(&s.program, &training.state)).collect::<Result<_, _>>()?;
        Ok(Prepared { stages, states, calibration })
    }
}

fn narrow(n: usize) -> Result<u32, PrepareError> {
    u32::try_from(n).map_err(|_| PrepareError::TooWide(n))
}

/// Rows to train on.
fn rows(data: &Dataset) -> Result<u32, PrepareError> {
    narrow(data.training.features.ty().dims().first().map_or(0, |rows| *rows as usize))
}
