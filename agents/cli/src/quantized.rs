//! A model folder in integers: read, calibrated on texts, quantised; and how far that is from the floats.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use tensorlink_graph::Engine;
use tensorlink_graph::transformer::{Magnitudes, Output, Quantized, Setting, StageRunner, Weights, tokens};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;
use tensorlink_tensor::float::{FloatModel, Precision};
use tensorlink_tensor::{Device, TorchEngine, calibrate};
use tensorlink_types::{Opcode, Operator};

use crate::calibration::known;
use crate::folder::{FolderError, Integers, ModelFolder, read_text};

/// Texts to measure on where the user names none.
pub const SENTENCES: &str = include_str!("../../../examples/sentences.txt");
/// Texts whose every intermediate result is looked at for saturation.
const TRACED: usize = 4;

/// A model in integers, and the floats it came from.
pub struct Prepared {
    /// In integers.
    pub exact: Quantized,
    /// In floats.
    pub float: FloatModel,
}

/// Texts of a file, or ours.
///
/// # Errors
/// A file that cannot be read, or is no text.
pub fn texts(file: Option<&Path>, ours: &str) -> Result<String, FolderError> {
    file.map_or_else(|| Ok(ours.to_owned()), read_text)
}

/// How a folder of floats is put into integers.
#[derive(clap::Args, Clone, Default, Debug)]
pub struct Quantising {
    /// Texts to calibrate on, one a line [default: the folder's own, or ours].
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Bits of activations by weights: fast (8 by 8), standard (16 by 8), reference (16 by 16) [default: standard].
    #[arg(long)]
    pub setting: Option<Setting>,
}

impl Quantising {
    /// Refuses what a folder of integers cannot be asked any more.
    fn ensure_done(&self, folder: &ModelFolder, exact: &Quantized) -> Result<()> {
        let shown = folder.path().display();
        let calibrated = "is quantised and calibrated already: leave out --calibration";
        ensure!(self.calibration.is_none(), "{shown} {calibrated}");
        let setting = exact.setting();
        ensure!(
            self.setting.is_none_or(|wanted| wanted == setting),
            "{shown} is quantised in the setting {setting} already: leave out --setting, or name the folder of floats"
        );
        Ok(())
    }
}

/// A folder's model in integers: as it lies there, or calibrated on [`known`] texts and quantised now.
///
/// # Errors
/// As [`prepare`]; a folder that is damaged; texts or another setting for one that is quantised already.
pub fn exact(folder: &ModelFolder, how: &Quantising, device: Device) -> Result<Quantized> {
    match folder.integers() {
        Some(integers) => {
            let exact = integers.read()?;
            how.ensure_done(folder, &exact)?;
            Ok(exact)
        }
        None => {
            let (weights, float) = floats(folder, device)?;
            let seen = calibrated(&known(folder, how.calibration.as_deref())?, &float)?;
            // A third of the memory, which the integers need now.
            drop(float);
            Ok(Quantized::new(folder.architecture().clone(), how.setting.unwrap_or_default(), &weights, &seen)?)
        }
    }
}

/// Reads a folder's weights and quantises them, calibrated on texts: one a line, empty lines ignored.
///
/// # Errors
/// Weights that are not the configuration's, a text that the tokenizer or the context refuses, no text at all.
pub fn prepare(folder: &ModelFolder, texts: &str, device: Device) -> Result<Prepared> {
    prepare_on(folder, &encode(folder, texts)?, Setting::default(), device)
}

/// As [`prepare`], calibrated on texts in token numbers.
///
/// # Errors
/// Weights that are not the configuration's, a failing device.
pub fn prepare_on(folder: &ModelFolder, known: &[Vec<u32>], setting: Setting, device: Device) -> Result<Prepared> {
    let (weights, float) = floats(folder, device)?;
    let seen = calibrated(known, &float)?;
    let exact = Quantized::new(folder.architecture().clone(), setting, &weights, &seen)?;
    Ok(Prepared { exact, float })
}

/// A quantised folder's model beside that of the folder with floats it was made of.
///
/// # Errors
/// Folders of different models.
pub fn beside(folder: &ModelFolder, integers: &Integers, against: &ModelFolder, device: Device) -> Result<Prepared> {
    ensure!(
        folder.architecture() == against.architecture(),
        "{} was not made of {}: their configurations differ",
        folder.path().display(),
        against.path().display()
    );
    let (_, float) = floats(against, device)?;
    Ok(Prepared { exact: integers.read()?, float })
}

fn floats(folder: &ModelFolder, device: Device) -> Result<(Weights, FloatModel)> {
    let weights = folder.weights()?;
    let float = FloatModel::new(folder.architecture(), &weights, device, Precision::F32)?;
    Ok((weights, float))
}

fn calibrated(known: &[Vec<u32>], float: &FloatModel) -> Result<Magnitudes> {
    Ok(calibrate(float, known.iter().map(Vec::as_slice))?)
}

/// Token numbers of texts, one a line.
///
/// # Errors
/// A line that the tokenizer or the context refuses; no line.
pub fn encode(folder: &ModelFolder, texts: &str) -> Result<Vec<Vec<u32>>> {
    let lines = texts.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let encode = |(line, number)| folder.tokenizer().encode(line).with_context(|| format!("line {number}"));
    let encoded = lines.map(encode).collect::<Result<Vec<_>>>()?;
    ensure!(!encoded.is_empty(), "no text: give a file with one text a line");
    Ok(encoded)
}

/// How far a model in integers is from the same in floats.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Distance {
    /// Texts compared.
    pub texts: usize,
    /// Their tokens.
    pub tokens: usize,
    /// Vectors compared: one a text for an encoder, one a token for a decoder.
    pub vectors: usize,
    /// Mean cosine between exact and float vectors.
    pub cosine_mean: f64,
    /// Least cosine.
    pub cosine_min: f64,
    /// Largest difference of an element.
    pub largest_difference: f64,
    /// Mean difference of an element.
    pub mean_difference: f64,
    /// Share of vectors that name the same largest element (decoder) or nearest other text (encoder).
    pub same_choice: f64,
    /// Perplexity of the texts by floats and by integers; decoders only.
    pub perplexity: Option<[f64; 2]>,
    /// Share of activations at the limit of their type, over the first texts.
    pub saturated: f64,
}

/// Compares a model with its floats over texts in token numbers.
///
/// # Errors
/// A text beyond the context; a failing device.
pub fn distance(prepared: &Prepared, engine: TorchEngine, texts: &[Vec<u32>]) -> Result<Distance> {
    let a = prepared.exact.architecture();
    let (plan, constants) = prepared.exact.stage(0..a.layers, tensor_root)?;
    let runner = StageRunner::new(engine, plan, &constants)?;
    drop(constants);
    let row = match a.output {
        Output::Embedding(_) => a.width,
        Output::Logits { .. } => a.vocabulary,
        Output::Classes(classes) => classes,
    } as usize;
    let mut sums = Sums::default();
    let mut pairs: Vec<[Vec<f64>; 2]> = Vec::new();
    for text in texts {
        let due: Vec<f64> = prepared.float.forward(text, None)?.values()?.into_iter().map(f64::from).collect();
        let got = runner.run(&tokens(text)?)?.to_f64();
        if got.len() != due.len() {
            bail!("{} exact values against {} in floats", got.len(), due.len());
        }
        for (place, (got, due)) in got.chunks(row).zip(due.chunks(row)).enumerate() {
            sums.compare(got, due);
            if matches!(a.output, Output::Logits { .. }) {
                sums.same += usize::from(largest(got) == largest(due));
                if let Some(next) = text.get(place + 1) {
                    sums.surprise[0] += surprise(due, *next);
                    sums.surprise[1] += surprise(got, *next);
                    sums.predicted += 1;
                }
            }
        }
        if matches!(a.output, Output::Embedding(_)) {
            pairs.push([got, due]);
        }
    }
    sums.same += same_neighbours(&pairs);
    let perplexity = (sums.predicted > 0).then(|| sums.surprise.map(|s| (s / sums.predicted as f64).exp()));
    let vectors = sums.vectors as f64;
    Ok(Distance {
        texts: texts.len(),
        tokens: texts.iter().map(Vec::len).sum(),
        vectors: sums.vectors,
        cosine_mean: sums.cosine / vectors,
        cosine_min: sums.worst,
        largest_difference: sums.largest,
        mean_difference: sums.difference / (vectors * row as f64),
        same_choice: sums.same as f64 / vectors,
        perplexity,
        saturated: saturated(&runner, texts)?,
    })
}

struct Sums {
    vectors: usize,
    cosine: f64,
    worst: f64,
    largest: f64,
    difference: f64,
    same: usize,
    surprise: [f64; 2],
    predicted: usize,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            vectors: 0,
            cosine: 0.0,
            worst: 1.0,
            largest: 0.0,
            difference: 0.0,
            same: 0,
            surprise: [0.0; 2],
            predicted: 0,
        }
    }
}

impl Sums {
    fn compare(&mut self, got: &[f64], due: &[f64]) {
        let cosine = dot(got, due) / (dot(got, got) * dot(due, due)).sqrt().max(f64::MIN_POSITIVE);
        self.vectors += 1;
        self.cosine += cosine;
        self.worst = self.worst.min(cosine);
        for (got, due) in got.iter().zip(due) {
            let difference = (got - due).abs();
            self.largest = self.largest.max(difference);
            self.difference += difference;
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Place of the first largest element.
fn largest(values: &[f64]) -> usize {
    let better = |best: (usize, f64), (i, x): (usize, &f64)| if *x > best.1 { (i, *x) } else { best };
    values.iter().enumerate().fold((0, f64::NEG_INFINITY), better).0
}

/// `−ln p` of a token.
fn surprise(logits: &[f64], token: u32) -> f64 {
    let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|x| (x - top).exp()).sum();
    top + sum.ln() - logits.get(token as usize).copied().unwrap_or(f64::NEG_INFINITY)
}

/// Texts whose nearest other text is the same by integers as by floats.
fn same_neighbours(pairs: &[[Vec<f64>; 2]]) -> usize {
    let nearest = |of: usize, side: usize| {
        let own = &pairs[of][side];
        let near = pairs.iter().enumerate().map(|(i, pair)| if i == of { -2.0 } else { dot(own, &pair[side]) });
        largest(&near.collect::<Vec<_>>())
    };
    (0..pairs.len()).filter(|of| nearest(*of, 0) == nearest(*of, 1)).count()
}

/// Share of activations that stand at the limit of their type, and so may have been cut.
fn saturated<E: Engine>(runner: &StageRunner<E>, texts: &[Vec<u32>]) -> Result<f64> {
    let (mut at_limit, mut all) = (0u64, 0u64);
    for text in texts.iter().take(TRACED) {
        let program = runner.plan().program(u32::try_from(text.len())?)?;
        for (operator, output) in program.operators.iter().zip(runner.trace(&tokens(text)?)?) {
            if rescales(operator) {
                at_limit += count_at_limit(&output);
                all += output.ty().elements();
            }
        }
    }
    Ok(at_limit as f64 / all.max(1) as f64)
}

/// Whether an operator puts results on a calibrated scale.
const fn rescales(operator: &Operator) -> bool {
    use Opcode::{Combine, Gather, HeadMix, HeadScores, Lookup, Mul, Norm, Rope, ShiftedMatMul};
    matches!(operator.opcode, Combine | Gather | HeadMix | HeadScores | Lookup | Mul | Norm | Rope | ShiftedMatMul)
}

fn count_at_limit(tensor: &Tensor) -> u64 {
    let limit = tensor.ty().limit().unsigned_abs();
    tensor.mantissas().to_vec().iter().filter(|m| m.unsigned_abs() == limit).count() as u64
}
