//! Folders put into integers, and what is measured of them.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tensorlink_folder::fixture::{scaled, trained, written};
use tensorlink_folder::integers;
use tensorlink_folder::texts::encode;
use tensorlink_model::fixture::Folder;
use tensorlink_model::{Family, QuantizeError};

use super::loss::Acceptance;
use super::*;

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

const TEXTS: &str = "the cat sat on the mat\na dog ran\nthe dog sat on a cat\n";

/// A folder of floats, its model in integers, and the folder of these: `out` in the second.
fn quantised(family: Family) -> (TempDir, Quantized, TempDir) {
    let floats = written(&Folder::new(family));
    let folder = ModelFolder::open(floats.path()).unwrap();
    let exact = prepare(&folder, TEXTS, Device::Cpu).unwrap().exact;
    let parent = tempfile::tempdir().unwrap();
    integers::write(&folder, &exact, None, &parent.path().join("out")).unwrap();
    (floats, exact, parent)
}

/// Calibrated on a file.
fn with(texts: &Path) -> Quantising {
    Quantising { calibration: Some(texts.to_owned()), setting: None }
}

#[test]
fn integers_are_calibrated_once_and_measured_against_their_floats() {
    let (floats, quantized, parent) = quantised(Family::Mistral);
    let folder = ModelFolder::open(&parent.path().join("out")).unwrap();
    let texts = parent.path().join("texts");
    fs::write(&texts, TEXTS).unwrap();
    assert!(exact(&folder, &Quantising::default(), Device::Cpu).unwrap() == quantized);
    let error = exact(&folder, &with(&texts), Device::Cpu).unwrap_err().to_string();
    assert!(error.contains("--calibration"), "{error}");
    let otherwise = Quantising { setting: Some(Setting::Reference), calibration: None };
    let error = exact(&folder, &otherwise, Device::Cpu).unwrap_err().to_string();
    assert!(error.contains("in the setting standard already: leave out --setting"), "{error}");
    let source = ModelFolder::open(floats.path()).unwrap();
    assert!(exact(&source, &with(&texts), Device::Cpu).unwrap() == quantized);

    let measured = encode(&folder, TEXTS).unwrap();
    let far = |prepared: &Prepared| prepared.distance(TorchEngine::new(Device::Cpu).unwrap(), &measured).unwrap();
    let both = beside(&folder, folder.integers().unwrap(), &source, Device::Cpu).unwrap();
    assert_eq!(far(&both), far(&prepare(&source, TEXTS, Device::Cpu).unwrap()));
    let other = written(&Folder::new(Family::Llama));
    let other = ModelFolder::open(other.path()).unwrap();
    let error = beside(&folder, folder.integers().unwrap(), &other, Device::Cpu).err().unwrap().to_string();
    assert!(error.contains("was not made of"), "{error}");
}

#[test]
fn what_was_lost_is_measured_once_and_kept() {
    let floats = written(&Folder::new(Family::Qwen3));
    let source = ModelFolder::open(floats.path()).unwrap();
    let engine = TorchEngine::new(Device::Cpu).unwrap();
    let parent = tempfile::tempdir().unwrap();
    let texts = parent.path().join("texts");
    fs::write(&texts, TEXTS).unwrap();
    let how = Quantising { setting: Some(Setting::Fast), ..with(&texts) };
    let made = measured(&source, &how, &engine).unwrap();
    let out = parent.path().join("out");
    integers::write(&source, &made.exact, made.distance.as_ref(), &out).unwrap();
    let folder = ModelFolder::open(&out).unwrap();
    let read = measured(&folder, &Quantising::default(), &engine).unwrap();
    assert!(read.exact == made.exact && folder.integers().unwrap().setting() == Setting::Fast);
    let (made, read) = (made.distance.unwrap(), read.distance.unwrap());
    assert_eq!((read.tokens, read.texts), (made.tokens, made.texts));
    assert!((read.same_choice - made.same_choice).abs() < 1e-9 && read.divergence.is_some(), "{read:?}");
}
