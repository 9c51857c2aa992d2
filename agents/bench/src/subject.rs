//! What is measured: decoders of fixed sizes with random weights and made-up texts, the same on every machine; and a
//! trained one.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use tensorlink_folder::texts::known;
use tensorlink_folder::{Distance, ModelFolder, compare};
use tensorlink_model::choice::{SamplingParams, controls_of_last};
use tensorlink_model::random::{self, Dimensions};
use tensorlink_model::{Architecture, Magnitudes, Output, Quantized, Setting, Weights};
use tensorlink_num::Tensor;
use tensorlink_tensor::float::{FloatModel, Precision};
use tensorlink_tensor::{Device, TorchEngine, calibrate};

use super::step::Shape;

/// Llama-shaped, 207 million weights.
const SIZE: Dimensions =
    Dimensions { vocabulary: 32_000, width: 1024, layers: 12, heads: 16, kv_heads: 8, hidden: 2816, context: 1024 };
/// The same in small: it shows that a row can be measured, and no figure of it means anything.
const SMALL: Dimensions =
    Dimensions { vocabulary: 300, width: 64, layers: 2, heads: 4, kv_heads: 2, hidden: 96, context: 64 };

/// A training step of 208 million weights.
const LARGE_STEP: Shape = Shape { width: 1024, layers: 17, heads: 16, hidden: 2816, sequences: 8, ..Shape::SMALL };
/// One that shows that it can be taken.
const QUICK_STEP: Shape =
    Shape { width: 64, layers: 2, heads: 4, hidden: 96, vocabulary: 64, context: 16, sequences: 2, ..Shape::SMALL };

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Whether only so little that every row is tried.
    pub quick: bool,
    /// Whether as much as a machine with much memory can train.
    pub large: bool,
}

impl Extent {
    /// Sizes of the decoder whose speed is measured.
    pub(super) const fn size(self) -> Dimensions {
        if self.quick { SMALL } else { SIZE }
    }

    /// What is trained.
    pub(super) const fn shape(self) -> Shape {
        match (self.quick, self.large) {
            (true, _) => QUICK_STEP,
            (false, true) => LARGE_STEP,
            (false, false) => Shape::SMALL,
        }
    }

    /// Steps of training, of which the median counts.
    pub(super) const fn steps(self) -> u32 {
        match (self.quick, self.large) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 5,
        }
    }

    /// Tokens of the texts.
    pub(super) const fn lengths(self) -> [u32; 2] {
        if self.quick { [5, 9] } else { [128, 512] }
    }

    /// Rounds, of which the median counts.
    pub(super) const fn rounds(self, rounds: usize) -> usize {
        if self.quick { 1 } else { rounds }
    }
}

/// Which decoder is measured.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which<'a> {
    /// A Llama with random weights.
    Random,
    /// A trained one, in a folder or a .gguf file.
    Trained(&'a Path),
}

impl Which<'_> {
    /// Reads it, or makes it up.
    pub(super) fn open(self, extent: Extent, device: Device) -> Result<Subject> {
        match self {
            Self::Random => Subject::llama(extent.size(), device),
            Self::Trained(path) => Subject::trained(path, device),
        }
    }
}

/// A model in floats, and what calibration saw of it.
pub(super) struct Subject {
    /// Which weights it has, for figures.
    pub(super) name: String,
    pub(super) architecture: Architecture,
    pub(super) weights: Weights,
    pub(super) float: FloatModel,
    seen: Magnitudes,
}

impl Subject {
    /// A Llama of these sizes.
    pub(super) fn llama(size: Dimensions, device: Device) -> Result<Self> {
        let architecture = random::llama(size);
        let weights = random::weights(&architecture, 1)?;
        let name = format!("random {} M", weights.count() / 1_000_000);
        Self::calibrated(name, (architecture, weights), device, &[text(48, size.vocabulary)])
    }

    /// The decoder of a folder or a .gguf file, calibrated as when it is served.
    pub(super) fn trained(path: &Path, device: Device) -> Result<Self> {
        let folder = ModelFolder::open(path)?;
        let (output, name) = (&folder.architecture().output, name(path));
        ensure!(matches!(output, Output::Logits { .. }), "{name} is no decoder: choose another --model");
        Self::of_folder(name, &folder, device)
    }

    /// The model of a folder, calibrated as when it is served.
    pub(super) fn of_folder(name: String, folder: &ModelFolder, device: Device) -> Result<Self> {
        let known = known(folder, None)?;
        Self::calibrated(name, (folder.architecture().clone(), folder.weights()?), device, &known)
    }

    /// A model with these weights, calibrated on some texts.
    pub(super) fn calibrated(
        name: String,
        (architecture, weights): (Architecture, Weights),
        device: Device,
        texts: &[Vec<u32>],
    ) -> Result<Self> {
        let float = FloatModel::new(&architecture, &weights, device, Precision::F32)?;
        let seen = calibrate(&float, texts.iter().map(Vec::as_slice))?;
        Ok(Self { name, architecture, weights, float, seen })
    }

    /// How far the model in integers is from its floats, over texts.
    pub(super) fn distance(&self, setting: Setting, engine: TorchEngine, texts: &[Vec<u32>]) -> Result<Distance> {
        let floats = |text: &[u32]| self.float.forward(text, None)?.values();
        Ok(compare(&self.quantized(setting)?, floats, engine, texts)?)
    }

    /// The model in integers.
    pub(super) fn quantized(&self, setting: Setting) -> Result<Quantized> {
        Ok(Quantized::new(self.architecture.clone(), setting, &self.weights, &self.seen)?)
    }
}

/// A model's name: its folder's, or its file's without the ending that says so.
pub(super) fn name(path: &Path) -> String {
    let gguf = path.extension().is_some_and(|ending| ending == "gguf");
    let name = if gguf { path.file_stem() } else { path.file_name() };
    name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Made-up tokens.
pub(super) fn text(count: u32, vocabulary: u32) -> Vec<u32> {
    (0..count).map(|i| i.wrapping_mul(2_654_435_761).rotate_left(7) % vocabulary).collect()
}

/// Controls of tokens from a position on that choose the likeliest token after the last of them.
pub(super) fn likeliest(position: u32, tokens: &[u32]) -> Result<Tensor> {
    Ok(controls_of_last(position, tokens, SamplingParams::default())?)
}

/// The last token that was chosen.
pub(super) fn chosen(output: &Tensor) -> Result<u32> {
    let tokens = output.mantissas().to_vec();
    Ok(u32::try_from(*tokens.last().context("no token was chosen")?)?)
}
