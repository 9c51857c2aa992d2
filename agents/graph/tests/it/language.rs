//! The training step of a language model: its gradients, and that integers learn what floats learn.

use std::collections::BTreeMap;
use std::io::Read;

use tensorlink_graph::calibrate::{calibrate_graph, job_key};
use tensorlink_graph::compile::{TrainingSet, compile_graph};
use tensorlink_graph::step::StepGraph;
use tensorlink_graph::step::float::{FloatData, FloatState, Values};
use tensorlink_graph::step::language::{AdamW, Recipe};
use tensorlink_graph::transformer::Architecture;
use tensorlink_graph::transformer::random::{Dimensions, llama, weights};
use tensorlink_graph::{CheckedProgram, LocalPipeline, Margins, Reference, Schedule, Stage};
use tensorlink_num::{StepContext, Tensor};
use tensorlink_types::{TensorRoot, TensorType};

const TINY: Dimensions =
    Dimensions { vocabulary: 11, width: 8, layers: 2, heads: 4, groups: 2, hidden: 12, context: 6 };

fn recipe(tokens: u32, sequences: u32, operand_bits: u8, steps: u32) -> Recipe {
    let warm = |step: u32| 3e-3 * (f64::from(step + 1) / 20.0).min(1.0);
    let optimizer = AdamW {
        rates: (0..steps).map(warm).collect(),
        beta1: 0.9,
        beta2: 1.0 - 41.0 / 4096.0,
        weight_decay: 0.1,
        clip: 1.0,
    };
    Recipe { tokens, sequences, operand_bits, optimizer }
}

fn float_state(architecture: &Architecture, seed: u64) -> FloatState {
    let drawn = weights(architecture, seed).unwrap();
    let mut state = BTreeMap::new();
    for (name, matrix) in drawn.iter() {
        let values: Vec<f64> = matrix.values().iter().map(|w| f64::from(*w)).collect();
        for moment in ["first", "second"] {
            state.insert(format!("{name}.{moment}"), vec![0.0; values.len()]);
        }
        state.insert(name.to_owned(), values);
    }
    state
}

#[test]
fn gradients_match_finite_differences() {
    let architecture = llama(TINY);
    let rows = 5;
    let graph = StepGraph::language(&architecture, &recipe(6, 2, 8, 3), rows).unwrap();
    let draw = |i: u32| f64::from(i * 7 % 11);
    let data = FloatData { features: (0..rows * 6).map(draw).collect(), labels: (1..=rows * 6).map(draw).collect() };
    let state = float_state(&architecture, 5);
    let context = StepContext { job_key: job_key(3), step: 1 };
    let loss = |state: &FloatState| Values::compute(&graph, &data, state, &context).loss() * 12.0;
    let values = Values::compute(&graph, &data, &state, &context);
    let mut checked = 0;
    for (name, weights) in state.iter().filter(|(name, _)| !name.ends_with("first") && !name.ends_with("second")) {
        let sum = graph.nodes().find(|(_, node)| node.site == format!("{name}.grad.sum"));
        let (sum, _) = sum.unwrap_or_else(|| panic!("{name} has a gradient"));
        for i in (0..weights.len()).step_by(7) {
            let nudged = |by: f64| {
                let mut state = state.clone();
                state.get_mut(name).unwrap()[i] += by;
                loss(&state)
            };
            let (gradient, difference) = (values.get(sum)[i], (nudged(1e-5) - nudged(-1e-5)) / 2e-5);
            let error = (gradient - difference).abs();
            assert!(error < 1e-6, "{name}[{i}]: {gradient} against {difference}");
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

/// Sequences of characters of the text, and those that follow.
fn text(tokens: usize) -> (TrainingSet, FloatData, u32) {
    let packed = include_bytes!("../../../../examples/kjv-1100k.txt.gz");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut text).unwrap();
    let mut alphabet: Vec<u8> = text.clone();
    alphabet.sort_unstable();
    alphabet.dedup();
    let id = |byte: &u8| alphabet.binary_search(byte).unwrap() as i64;
    let rows = 2000;
    let sequences = |ahead: usize| -> Vec<i64> {
        (0..rows).flat_map(|row| text[row * 137 + ahead..][..tokens].iter().map(id)).collect()
    };
    let ty = TensorType::new(16, 0, &[rows as u32, tokens as u32]).unwrap();
    let tensor = |ahead| Tensor::from_wide(ty.clone(), &sequences(ahead)).unwrap();
    let set = TrainingSet { features: tensor(0), labels: tensor(1) };
    let data = FloatData { features: set.features.to_f64(), labels: set.labels.to_f64() };
    (set, data, alphabet.len() as u32)
}

fn quantised_state(program: &CheckedProgram, state: &FloatState) -> Vec<Tensor> {
    let slot = |slot: &tensorlink_types::StateSlot| {
        let unit = f64::from(slot.ty.exponent()).exp2();
        let values: Vec<i64> = state[&slot.name].iter().map(|x| (x * unit).round_ties_even() as i64).collect();
        Tensor::from_wide(slot.ty.clone(), &values).unwrap()
    };
    program.state.iter().map(slot).collect()
}

#[test]
fn integers_learn_what_floats_learn() {
    let (set, data, vocabulary) = text(32);
    let size = Dimensions { vocabulary, width: 32, layers: 2, heads: 4, groups: 2, hidden: 64, context: 32 };
    let architecture = llama(size);
    let margins = Margins { weight: 1, activation: 3, gradient: 5, velocity: 4 };
    for bits in [16, 8] {
        let steps = 40;
        let recipe = recipe(32, 4, bits, steps);
        let graph = StepGraph::language(&architecture, &recipe, 2000).unwrap();
        let state = float_state(&architecture, 1);
        let calibration = calibrate_graph(&graph, &data, state.clone(), 10, 2, margins).unwrap();
        let commit = |_: &Tensor| TensorRoot::default();
        let compiled = compile_graph(&graph, &calibration.exponents, &set, &[0..4], commit).unwrap();
        let prepared: Vec<_> = compiled
            .into_iter()
            .map(|stage| {
                let program = CheckedProgram::new(stage.program).unwrap();
                let state = quantised_state(&program, &state);
                (program, stage.info, stage.constants, state)
            })
            .collect();
        let stages: Vec<Stage<'_>> =
            prepared.iter().map(|(program, info, constants, state)| Stage { program, info, constants, state }).collect();
        let mut pipeline = LocalPipeline::new(&stages, job_key(9), || Reference).unwrap();
        let mut float = state.clone();
        for step in 0..steps {
            let exact = pipeline.step(step, Schedule::OneByOne).unwrap();
            let context = StepContext { job_key: job_key(9), step };
            let values = Values::compute(&graph, &data, &float, &context);
            let loss = values.loss();
            float = values.next_state();
            if step % 5 == 4 { println!("{bits} bits, step {step}: {} against {loss}", exact.loss()); }
        }
    }
}
