//! What exact training learns, against libtorch's floats: the same weights, sequences and schedule, one thread.
//!
//! `cargo run --release -p tensorlink-tensor --example learn -- MODEL.json TEXT[.gz] [8|16|f32|bf16 ...]` prints the mean loss of the
//! steps and that of 64 held-out sequences, eight times on the way. The figures of the README are those of `examples/king-james.json`.

use std::error::Error;
use std::io::Read;
use std::time::Instant;

use tensorlink_graph::calibrate::job_key;
use tensorlink_graph::data::text::Text;
use tensorlink_graph::model::Decoder;
use tensorlink_graph::model::language::Origin;
use tensorlink_graph::{
    CheckedProgram, Dataset, LanguageModel, LocalPipeline, Schedule, Stage, Training, TrainingSet, evaluate, init,
};
use tensorlink_num::{Tensor, philox};
use tensorlink_tensor::float::{FloatTraining, Precision};
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_types::{JobKey, TensorRoot, TensorType};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Sequences that the model never sees.
const HELD_OUT: u32 = 64;
/// Steps of calibration, as `job post` takes them.
const CALIBRATION: u32 = 12;
/// Lines for each way of training.
const LINES: u32 = 8;

struct Subject {
    json: serde_json::Value,
    data: Dataset,
    key: JobKey,
}

fn main() -> Outcome<()> {
    tch::set_num_threads(1);
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: learn MODEL.json TEXT[.gz] [8|16|f32|bf16 ...]";
    let (model, text) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let ways: Vec<String> = arguments.collect();
    let json = serde_json::from_slice(&std::fs::read(&model)?)?;
    let context = LanguageModel::parse(&model, serde_json::to_string(&json)?.as_bytes())?.context();
    let subject = Subject { json, data: Text::parse(&read(&text)?)?.split(context)?, key: job_key(9) };
    let all = ["f32", "bf16", "16", "8"].map(str::to_owned);
    for way in if ways.is_empty() { &all[..] } else { &ways[..] } {
        match way.as_str() {
            "f32" => floats(&subject, way, Precision::F32)?,
            "bf16" => floats(&subject, way, Precision::Bf16)?,
            bits => integers(&subject, way, bits.parse()?)?,
        }
    }
    Ok(())
}

fn read(path: &str) -> Outcome<Vec<u8>> {
    let bytes = std::fs::read(path)?;
    if !path.ends_with(".gz") {
        return Ok(bytes);
    }
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut text)?;
    Ok(text)
}

impl Subject {
    fn model(&self, bits: u8) -> Outcome<LanguageModel> {
        let mut json = self.json.clone();
        json["operand_bits"] = bits.into();
        Ok(LanguageModel::parse("the model", json.to_string().as_bytes())?)
    }

    fn rows(&self) -> u32 {
        self.data.training.features.ty().dims().first().copied().unwrap_or_default()
    }

    fn characters(&self) -> u32 {
        self.data.classes.len() as u32
    }

    fn training(&self, model: &LanguageModel) -> Outcome<Training> {
        Ok(Training::of_language(model, decoder(model)?, self.characters(), self.rows())?)
    }

    /// The first held-out sequences.
    fn held_out(&self) -> Outcome<TrainingSet> {
        let first = |tensor: &Tensor| -> Outcome<Tensor> {
            let tokens = tensor.ty().row() as u32;
            let ty = TensorType::new(tensor.ty().bits(), 0, &[HELD_OUT.min(tensor.ty().rows() as u32), tokens])?;
            let ids: Vec<i64> = tensor.mantissas().to_vec().into_iter().take(ty.elements() as usize).collect();
            Ok(Tensor::from_wide(ty, &ids)?)
        };
        Ok(TrainingSet { features: first(&self.data.held_out.features)?, labels: first(&self.data.held_out.labels)? })
    }
}

fn decoder(model: &LanguageModel) -> Outcome<&Decoder> {
    match model.origin() {
        Origin::Decoder(decoder) => Ok(decoder),
        Origin::From(_) => Err("a model with a `decoder` is learnt by; this one is imported".into()),
    }
}

/// Prints a line now and then.
struct Progress<'a> {
    way: &'a str,
    steps: u32,
    sum: f64,
    started: Instant,
}

impl<'a> Progress<'a> {
    fn new(way: &'a str, steps: u32) -> Self {
        Self { way, steps, sum: 0.0, started: Instant::now() }
    }

    fn take(&mut self, step: u32, loss: f64, held_out: impl FnOnce() -> Outcome<f64>) -> Outcome<()> {
        self.sum += loss;
        let every = (self.steps / LINES).max(1);
        if (step + 1).is_multiple_of(every) {
            let (mean, seconds) = (self.sum / f64::from(every), self.started.elapsed().as_secs_f64());
            println!(
                "{:>4} step {:>5}: loss {mean:.4}, held out {:.4}, {seconds:.0} s",
                self.way,
                step + 1,
                held_out()?
            );
            self.sum = 0.0;
        }
        Ok(())
    }
}

fn floats(subject: &Subject, way: &str, precision: Precision) -> Outcome<()> {
    let model = subject.model(8)?;
    let (training, tokens) = (subject.training(&model)?, model.context() as usize);
    let recipe = model.recipe(model.sequences());
    let architecture = decoder(&model)?.architecture(subject.characters());
    let mut float = FloatTraining::new(&architecture, &recipe, &training.state, (Device::Cpu, precision))?;
    let ids = |set: &TrainingSet| (set.features.mantissas().to_vec(), set.labels.mantissas().to_vec());
    let ((features, labels), held_out) = (ids(&subject.data.training), ids(&subject.held_out()?));
    let mut progress = Progress::new(way, model.steps());
    for step in 0..model.steps() {
        let drawn = |s| philox::draw_below(&subject.key, s, step, subject.rows().into()) as usize;
        let batch = |ids: &[i64]| -> Vec<i64> {
            let rows = (0..model.sequences()).map(drawn);
            rows.flat_map(|row| ids.iter().skip(row * tokens).take(tokens).copied()).collect()
        };
        let loss = float.step(&batch(&features), &batch(&labels), tokens, step)?;
        progress.take(step, loss, || Ok(float.loss(&held_out.0, &held_out.1, tokens)?))?;
    }
    Ok(())
}

fn integers(subject: &Subject, way: &str, bits: u8) -> Outcome<()> {
    let model = subject.model(bits)?;
    let (training, data) = (subject.training(&model)?, &subject.data.training);
    let calibration = training.calibrate(data, CALIBRATION, model.seed())?;
    let whole: Vec<_> = std::iter::once(0..training.layers.len()).collect();
    let stage =
        training.compile(&calibration, data, &whole, |_: &Tensor| TensorRoot::default())?.pop().ok_or("a program")?;
    let state = init::state(&stage.program, &training.state)?;
    let (program, info, constants) = (CheckedProgram::new(stage.program)?, stage.info, stage.constants);
    let (engine, held_out) = (TorchEngine::new(Device::Cpu)?, subject.held_out()?);
    let stages = [Stage { program: &program, info: &info, constants: &constants, state: &state }];
    let mut pipeline = LocalPipeline::new(&stages, subject.key, || engine.clone())?;
    let mut progress = Progress::new(way, model.steps());
    for step in 0..model.steps() {
        let loss = pipeline.step(step, Schedule::OneByOne)?.loss();
        progress.take(step, loss, || {
            let state = pipeline.state()?.pop().unwrap_or_default();
            let stages = [Stage { program: &program, info: &info, constants: &constants, state: &state }];
            Ok(evaluate(&engine, &stages, &held_out)?.loss())
        })?;
    }
    Ok(())
}
