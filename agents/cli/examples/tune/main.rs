//! What exact training makes of a model with real weights, against libtorch's floats: the same weights, adapters,
//! sequences and schedule.
//!
//! `cargo run --release -p tensorlink --example tune -- MODEL.json TEXT[.gz] [f32|16|8 ...]` reads both as
//! `tensorlink job post` does, of a model file with `from`. It prints the mean loss of the steps and that of text which
//! was held out, halfway and at the end. In either way the latter is computed by libtorch in 32 bits, from the weights
//! as floats, which is how they are written to a folder. `STEPS` and `SEED` in the environment stand for the model's.
//! The seed draws the adapters, the order of the text, and what gradients are rounded by.
//!
//! | module | what lives there |
//! |---|---|
//! | here | a run in either way |
//! | `held_out` | the text that was held out |

mod held_out;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use tensorlink::commands::post;
use tensorlink_model::Architecture;
use tensorlink_program::CheckedProgram;
use tensorlink_tensor::float::{FloatTraining, Precision};
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_training::calibrate::job_key;
use tensorlink_training::step::float::FloatState;
use tensorlink_training::step::language::Recipe;
use tensorlink_training::{LocalPipeline, Schedule, Stage};
use tensorlink_user::{Draft, Prepared};

use crate::held_out::HeldOut;

/// Lines for each way of training.
const LINES: u32 = 2;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: tune MODEL.json TEXT[.gz] [f32|16|8 ...]";
    let (model, text) = (arguments.next().context(usage)?, arguments.next().context(usage)?);
    let ways: Vec<String> = arguments.collect();
    let all = ["f32", "16", "8"].map(str::to_owned);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&model)?)?;
    for way in if ways.is_empty() { &all[..] } else { &ways[..] } {
        let mut json = json.clone();
        for (field, value) in [("steps", std::env::var("STEPS")), ("seed", std::env::var("SEED"))] {
            if let Ok(value) = value {
                json[field] = value.parse::<u64>()?.into();
            }
        }
        if way != "f32" {
            json["operand_bits"] = way.parse::<u8>()?.into();
        }
        let folder = Path::new(&model).parent().unwrap_or(Path::new(""));
        let draft = post::draft((&model, json.to_string().as_bytes()), folder, Path::new(&text))?;
        let run = Run::new(way, &draft);
        if way == "f32" { run.floats(&draft)? } else { run.integers(draft)? }
    }
    Ok(())
}

/// What is printed of a way of training.
struct Run<'a> {
    way: &'a str,
    seed: u64,
    steps: u32,
    held_out: HeldOut,
    sum: f64,
    started: Instant,
}

impl<'a> Run<'a> {
    fn new(way: &'a str, draft: &Draft) -> Self {
        let held_out = HeldOut::of(&draft.data.held_out);
        Self { way, seed: draft.seed(), steps: draft.steps, held_out, sum: 0.0, started: Instant::now() }
    }

    /// By libtorch's autograd.
    fn floats(mut self, draft: &Draft) -> Result<()> {
        let (architecture, recipe) = language(draft)?;
        let tokens = recipe.tokens as usize;
        let mut model = begin(architecture, recipe, &draft.training.state)?;
        self.begin(self.held_out.loss(&model)?);
        for step in 0..self.steps {
            let [features, labels] = draft.data.training.drawn(&job_key(self.seed), step, recipe.sequences);
            let loss = model.step(&features, &labels, tokens, step)?;
            self.take(step, loss, |held_out| held_out.loss(&model))?;
        }
        Ok(())
    }

    /// In exact integers, in one stage.
    fn integers(mut self, draft: Draft) -> Result<()> {
        let whole = 0..draft.training.layers.len();
        let Prepared { mut stages, mut states, .. } = post::compile(&draft, &[whole])?;
        let (architecture, recipe) = language(&draft)?;
        let (architecture, recipe) = (architecture.clone(), recipe.clone());
        drop(draft);
        let (stage, state) = stages.pop().zip(states.pop()).context("a model without layers")?;
        let (program, info, constants) = (CheckedProgram::new(stage.program)?, stage.info, stage.constants);
        let engine = TorchEngine::new(Device::Cpu)?;
        let stage = Stage { program: &program, info: &info, constants: &constants, state: &state };
        let mut pipeline = LocalPipeline::new(&[stage], job_key(self.seed), || engine.clone())?;
        drop(state);
        let names: Vec<&str> = program.state.iter().map(|slot| slot.name.as_str()).collect();
        let parameters = recipe.parameters(&architecture);
        for step in 0..self.steps {
            let loss = pipeline.step(step, Schedule::OneByOne)?.loss();
            self.take(step, loss, |held_out| {
                let state = pipeline.state()?.pop().unwrap_or_default();
                let named = names.iter().zip(&state).filter(|(name, _)| parameters.iter().any(|p| p.name == **name));
                let floats = named.map(|(name, tensor)| ((*name).to_owned(), tensor.to_f64())).collect();
                held_out.loss(&begin(&architecture, &recipe, &floats)?)
            })?;
        }
        Ok(())
    }

    fn begin(&self, held_out: f64) {
        println!("{:>4} seed {} step    0: held out {held_out:.4}", self.way, self.seed);
    }

    fn take(&mut self, step: u32, loss: f64, held_out: impl FnOnce(&HeldOut) -> Result<f64>) -> Result<()> {
        self.sum += loss;
        let every = (self.steps / LINES).max(1);
        if (step + 1).is_multiple_of(every) {
            let (mean, seconds) = (self.sum / f64::from(every), self.started.elapsed().as_secs_f64());
            let held_out = held_out(&self.held_out)?;
            println!(
                "{:>4} seed {} step {:>4}: loss {mean:.4}, held out {held_out:.4}, {seconds:.0} s",
                self.way,
                self.seed,
                step + 1
            );
            self.sum = 0.0;
        }
        Ok(())
    }
}

fn language(draft: &Draft) -> Result<(&Architecture, &Recipe)> {
    draft.training.language().context("only language models are tuned: write a model file with `from`")
}

fn begin(architecture: &Architecture, recipe: &Recipe, state: &FloatState) -> Result<FloatTraining> {
    Ok(FloatTraining::new(architecture, recipe, state, (Device::Cpu, Precision::F32))?)
}
