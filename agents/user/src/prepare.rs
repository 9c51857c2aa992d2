//! From a model file and a data set to the programs and states of a job. No network, no chain.

use std::ops::Range;

use tensorlink_graph::calibrate::{self, CalibrateError, Calibration};
use tensorlink_graph::init::{self, InitError};
use tensorlink_graph::model::{LayerWeights, WeightsError, weights};
use tensorlink_graph::partition::{self, PartitionError};
use tensorlink_graph::{
    CompileError, CompiledStage, DataError, Dataset, Margins, Model, ModelError, Network, Table, compile,
};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;
use thiserror::Error;

/// Most steps of calibration; the largest values come early.
const CALIBRATION: u32 = 400;

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
    #[error("the data has {0} classes or columns, more than a model can have")]
    TooWide(usize),
}

/// A model with its data, not yet cut.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The model file.
    pub model: Model,
    /// Its layers, ends fixed by the data.
    pub network: Network,
    /// The data, split and scaled.
    pub data: Dataset,
    /// Initial weights.
    pub weights: Vec<LayerWeights>,
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
    pub fn new(model: Model, csv: &[u8], weights_file: Option<(&str, &[u8])>) -> Result<Self, PrepareError> {
        let table = Table::parse(csv)?;
        let narrow = |n: usize| u32::try_from(n).map_err(|_| PrepareError::TooWide(n));
        let network = model.network(narrow(table.width)?, narrow(table.classes.len())?)?;
        let data = table.split(model.operand_bits(), model.seed())?;
        let weights = match weights_file {
            Some((name, bytes)) => weights::import(name, bytes, &network)?,
            None => init::gaussian(&network, model.seed()),
        };
        Ok(Self { model, network, data, weights })
    }

    /// Parameters of the network.
    pub fn parameters(&self) -> u64 {
        let layer = |l: &tensorlink_graph::model::Linear| u64::from(l.output) * (u64::from(l.input) + 1);
        self.network.layers.iter().map(layer).sum()
    }

    /// Cuts the network for workers of these memories (bytes), in their order.
    ///
    /// # Errors
    /// [`PrepareError::Partition`].
    pub fn cut(&self, memories: &[u64]) -> Result<Vec<Range<usize>>, PrepareError> {
        Ok(partition::partition(&partition::layer_bytes(&self.network), memories)?)
    }

    /// Calibrates and compiles.
    ///
    /// # Errors
    /// [`PrepareError`].
    pub fn compile(&self, ranges: &[Range<usize>]) -> Result<Prepared, PrepareError> {
        let margins = Margins::for_operands(self.network.operand_bits);
        let steps = self.model.steps().min(CALIBRATION);
        let seed = self.model.seed();
        let training = &self.data.training;
        let calibration = calibrate::calibrate(&self.network, &self.weights, training, steps, seed, margins)?;
        let stages = compile(&self.network, &calibration.exponents, training, ranges, tensor_root)?;
        let states =
            stages.iter().map(|s| init::state(&s.program, &s.info, &self.weights)).collect::<Result<_, _>>()?;
        Ok(Prepared { stages, states, calibration })
    }
}
