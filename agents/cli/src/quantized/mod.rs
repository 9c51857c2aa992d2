//! A model folder in integers: read, calibrated on texts, quantised; and how far that is from the floats.
//!
//! | module | what lives there |
//! |---|---|
//! | here | quantising a folder, and measuring it |
//! | [`loss`] | what is said of a loss, and what is refused |

pub mod loss;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use tensorlink_folder::texts::{encode, held_out, known};
use tensorlink_folder::{ComparisonError, Distance, Integers, ModelFolder, compare};
use tensorlink_model::{Magnitudes, Quantized, Setting, Weights};
use tensorlink_tensor::float::{FloatModel, Precision};
use tensorlink_tensor::{Device, TorchEngine, calibrate};

/// A model in integers, and the floats it came from.
pub struct Prepared {
    /// In integers.
    pub exact: Quantized,
    /// In floats.
    pub float: FloatModel,
}

impl Prepared {
    /// How far both are apart, over texts in token numbers.
    ///
    /// # Errors
    /// A text beyond the context; a failing device; floats that are no numbers.
    pub fn distance(&self, engine: TorchEngine, texts: &[Vec<u32>]) -> Result<Distance, ComparisonError> {
        compare(&self.exact, |text| self.float.forward(text, None)?.values(), engine, texts)
    }
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
    let distance = prepared.distance(engine.clone(), &unseen)?;
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
mod tests;
