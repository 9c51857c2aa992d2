//! What exact training learns, against libtorch's floats: the same weights, rows and schedule, one thread.
//!
//! `cargo run --release -p tensorlink-tensor --example learn -- MODEL.json DATA[.gz] [8|16|f32|bf16 ...]` prints the
//! mean loss of the steps and that of rows which were held out, eight times on the way. A model of layers takes a
//! table; of a decoder's text the last tenth is held out. `STEPS` in the environment stands for the model's steps. The
//! figures of the benchmarks are those of `examples/king-james.json` and `examples/digits.json`.

mod language;
mod progress;
mod table;

use std::error::Error;
use std::io::Read;

use tensorlink_num::Tensor;
use tensorlink_program::CheckedProgram;
use tensorlink_tensor::float::Precision;
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_training::model::LanguageModel;
use tensorlink_training::{LocalPipeline, Schedule, Stage, Training, TrainingSet, init};
use tensorlink_types::{JobKey, TensorRoot};

use crate::language::Decoded;
use crate::progress::Progress;
use crate::table::Tabular;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A model and its data.
trait Subject {
    /// Its training in exact mode, with operands of so many bits.
    fn exact(&self, bits: u8) -> Outcome<Exact>;

    /// Trains it by libtorch's autograd.
    fn floats(&self, way: &str, precision: Precision) -> Outcome<()>;
}

/// A test of what a stage has learned, which is all of the model.
type HeldOut = Box<dyn Fn(Stage<'_>) -> Outcome<f64>>;

/// A training in exact mode.
struct Exact {
    training: Training,
    /// Float steps that exponents are chosen by.
    calibration: u32,
    data: TrainingSet,
    /// Mean loss of the held-out rows.
    held_out: HeldOut,
    key: JobKey,
    seed: u64,
    steps: u32,
}

fn main() -> Outcome<()> {
    tch::set_num_threads(1);
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: learn MODEL.json DATA[.gz] [8|16|f32|bf16 ...]";
    let (model, data) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let ways: Vec<String> = arguments.collect();
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&model)?)?;
    if let Ok(steps) = std::env::var("STEPS") {
        json["steps"] = steps.parse::<u32>()?.into();
    }
    let subject: Box<dyn Subject> = if LanguageModel::is_meant(json.to_string().as_bytes()) {
        Box::new(Decoded::new(json, &read(&data)?)?)
    } else {
        Box::new(Tabular::new(json, &read(&data)?)?)
    };
    let all = ["f32", "bf16", "16", "8"].map(str::to_owned);
    for way in if ways.is_empty() { &all[..] } else { &ways[..] } {
        match way.as_str() {
            "f32" => subject.floats(way, Precision::F32)?,
            "bf16" => subject.floats(way, Precision::Bf16)?,
            bits => integers(&subject.exact(bits.parse()?)?, way)?,
        }
    }
    Ok(())
}

fn read(path: &str) -> Outcome<Vec<u8>> {
    let bytes = std::fs::read(path)?;
    if !path.ends_with(".gz") {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain)?;
    Ok(plain)
}

fn integers(exact: &Exact, way: &str) -> Outcome<()> {
    let training = &exact.training;
    let calibration = training.calibrate(&exact.data, exact.calibration, exact.seed)?;
    let whole: Vec<_> = std::iter::once(0..training.layers.len()).collect();
    let stages = training.compile(&calibration, &exact.data, &whole, |_: &Tensor| TensorRoot::default())?;
    let stage = stages.into_iter().next().ok_or("a program")?;
    let state = init::state(&stage.program, &training.state)?;
    let (program, info, constants) = (CheckedProgram::new(stage.program)?, stage.info, stage.constants);
    let engine = TorchEngine::new(Device::Cpu)?;
    let stage = Stage { program: &program, info: &info, constants: &constants, state: &state };
    let mut pipeline = LocalPipeline::new(&[stage], exact.key, || engine.clone())?;
    let mut progress = Progress::new(way, exact.steps);
    for step in 0..exact.steps {
        let loss = pipeline.step(step, Schedule::OneByOne)?.loss();
        progress.take(step, loss, || {
            let state = pipeline.state()?.pop().unwrap_or_default();
            (exact.held_out)(Stage { state: &state, ..stage })
        })?;
    }
    Ok(())
}
