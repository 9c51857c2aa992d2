//! A model folder in integers: read, calibrated on texts, quantised; and how far that is from the floats.
//!
//! | module | what lives there |
//! |---|---|
//! | here | quantising a folder |
//! | `texts` | texts to calibrate on, and others to measure on |
//! | `calibration` | those of ours to calibrate on |
//! | [`passages`](mod@passages) | pieces of a long text to measure on |
//! | [`distance`](mod@distance) | integers against floats, over texts |
//! | [`loss`] | how much of a loss is accepted, and what is refused |

mod calibration;
pub mod distance;
pub mod loss;
pub mod passages;
mod texts;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use tensorlink_graph::transformer::{Magnitudes, Quantized, Setting, Weights};
use tensorlink_tensor::float::{FloatModel, Precision};
use tensorlink_tensor::{Device, TorchEngine, calibrate};

pub use distance::{Distance, distance};
pub use texts::{SENTENCES, encode, held_out, known, texts};

use crate::folder::{Integers, ModelFolder};

/// A model in integers, and the floats it came from.
pub struct Prepared {
    /// In integers.
    pub exact: Quantized,
    /// In floats.
    pub float: FloatModel,
}

/// How a folder of floats is put into integers.
#[derive(clap::Args, Clone, Default, Debug)]
pub struct Quantising {
    /// Texts to calibrate on, one a line, each cut to the context [default: the folder's own, or ours].
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
        None => Ok(quantised(folder, &known(folder, how.calibration.as_deref())?, how, device)?.0),
    }
}

/// A model in integers, and how far it is from its floats on texts that calibration never saw.
pub struct Measured {
    /// In integers.
    pub exact: Quantized,
    /// None if there are no such texts: see [`held_out`].
    pub distance: Option<Distance>,
}

/// As [`exact`], and measured on [`held_out`] texts; of a folder of integers, what was measured when it was made.
///
/// # Errors
/// As [`exact`]; a failing device; results that are no numbers.
pub fn measured(folder: &ModelFolder, how: &Quantising, engine: &TorchEngine) -> Result<Measured> {
    if let Some(integers) = folder.integers() {
        return Ok(Measured { exact: exact(folder, how, engine.device())?, distance: integers.distance().cloned() });
    }
    let known = known(folder, how.calibration.as_deref())?;
    let unseen = held_out(folder, &known)?;
    let (exact, weights) = quantised(folder, &known, how, engine.device())?;
    if unseen.is_empty() {
        return Ok(Measured { exact, distance: None });
    }
    let float = FloatModel::new(folder.architecture(), &weights, engine.device(), Precision::F32)?;
    drop(weights);
    let prepared = Prepared { exact, float };
    let distance = distance(&prepared, engine.clone(), &unseen)?;
    Ok(Measured { exact: prepared.exact, distance: Some(distance) })
}

/// A folder of floats in integers, and the floats.
fn quantised(
    folder: &ModelFolder,
    known: &[Vec<u32>],
    how: &Quantising,
    device: Device,
) -> Result<(Quantized, Weights)> {
    let (weights, float) = floats(folder, device)?;
    let seen = calibrated(known, &float)?;
    // A third of the memory, which the integers need now.
    drop(float);
    let exact = Quantized::new(folder.architecture().clone(), how.setting.unwrap_or_default(), &weights, &seen)?;
    Ok((exact, weights))
}

/// Reads a folder's weights and quantises them, calibrated on texts: one a line, empty lines ignored.
///
/// # Errors
/// Weights that are not the configuration's, a text that the tokenizer refuses, no text at all.
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

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;
    use tensorlink_graph::transformer::random::{Dimensions, llama, weights};
    use tensorlink_graph::transformer::{Matrix, QuantizeError};

    use super::loss::Acceptance;
    use super::*;
    use crate::folder::Trained;

    const SIZE: Dimensions =
        Dimensions { vocabulary: 4, width: 16, layers: 1, heads: 2, kv_heads: 1, hidden: 24, context: 16 };

    /// A folder like those of models that are trained here, with these texts of its own, and weights of another size.
    fn scaled(texts: &[&str], by: f32) -> (TempDir, PathBuf) {
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("model");
        let architecture = llama(SIZE);
        let matrices = weights(&architecture, 3).unwrap().into_matrices().into_iter().map(|(name, matrix)| {
            let values = matrix.values().iter().map(|value| value * by).collect();
            (name, Matrix::new(matrix.rows(), matrix.columns(), values).unwrap())
        });
        let weights = Weights::new(&architecture, matrices.collect()).unwrap();
        let characters = ["\n", " ", "a", "b"].map(String::from);
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Trained { architecture: &architecture, weights: &weights, characters: &characters, texts: &texts }
            .write(&out)
            .unwrap();
        (parent, out)
    }

    pub(crate) fn trained(texts: &[&str]) -> (TempDir, PathBuf) {
        scaled(texts, 1.0)
    }

    fn engine() -> TorchEngine {
        TorchEngine::new(Device::Cpu).unwrap()
    }

    #[test]
    fn a_model_that_loses_little_is_admitted_and_one_that_loses_much_is_refused_unless_that_is_accepted() {
        let (_parent, out) = trained(&["a b\n", "ab\n", "b a\n", "ba ab ba\n"]);
        let folder = ModelFolder::open(&out).unwrap();
        let how = Quantising { setting: Some(Setting::Reference), calibration: None };
        let measured = |change: fn(&mut Distance)| {
            let mut measured = measured(&folder, &how, &engine()).unwrap();
            measured.distance.iter_mut().for_each(change);
            measured
        };
        let (strict, lenient) = (Acceptance::default(), Acceptance { accept_loss: true });
        let exact = exact(&folder, &how, Device::Cpu).unwrap();
        assert!(strict.admit(measured(|_| ())).unwrap() == exact);
        let worse = |distance: &mut Distance| {
            distance.perplexity.iter_mut().for_each(|[float, exact]| *exact = *float * 1.03);
        };
        let refused = strict.admit(measured(worse)).err().unwrap().to_string();
        for said in ["perplexity rises by 3.00 %", "9 tokens", "--calibration", "--accept-loss"] {
            assert!(refused.contains(said), "{said}: {refused}");
        }
        assert!(lenient.admit(measured(worse)).unwrap() == exact);
    }

    #[test]
    fn what_cannot_be_measured_is_refused_unless_that_is_accepted() {
        let (_parent, out) = trained(&["a b\n"]);
        let folder = ModelFolder::open(&out).unwrap();
        let measured = || measured(&folder, &Quantising::default(), &engine()).unwrap();
        let refused = Acceptance::default().admit(measured()).err().unwrap().to_string();
        assert!(refused.contains("is not known") && refused.contains("--accept-loss"), "{refused}");
        assert!(Acceptance { accept_loss: true }.admit(measured()).is_ok());
    }

    #[test]
    fn calibration_that_overflows_is_told_of() {
        let (_parent, out) = scaled(&["a b\n"], 1e30);
        let folder = ModelFolder::open(&out).unwrap();
        let error = exact(&folder, &Quantising::default(), Device::Cpu).err().unwrap();
        assert!(matches!(error.downcast_ref(), Some(QuantizeError::Overflow { .. })), "{error}");
        assert!(error.to_string().contains("calibration overflows at "), "{error}");
    }
}
