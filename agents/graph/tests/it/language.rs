//! The training step of a language model: its gradients, and that integers learn what floats learn.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;

use tensorlink_graph::calibrate::{Calibration, job_key};
use tensorlink_graph::data::text::Text;
use tensorlink_graph::step::StepGraph;
use tensorlink_graph::step::float::{FloatData, FloatState, Values};
use tensorlink_graph::step::language::{AdamW, Recipe};
use tensorlink_graph::transformer::Architecture;
use tensorlink_graph::transformer::random::{Dimensions, llama, weights};
use tensorlink_graph::{
    CheckedProgram, CompiledStage, Dataset, LanguageModel, LocalPipeline, Reference, Schedule, Stage, StageInfo,
    Training, TrainingSet, evaluate, init,
};
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

/// A language model with the King James text, the prepared training, and the text's sequences.
fn king_james(operand_bits: u8) -> (LanguageModel, Training, Dataset) {
    let packed = include_bytes!("../../../../examples/kjv-1100k.txt.gz");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut text).unwrap();
    let json = format!(
        r#"{{ "name": "tiny",
            "decoder": {{ "width": 32, "layers": 2, "heads": 4, "groups": 2, "hidden": 64, "context": 32 }},
            "optimizer": {{ "learning_rate": 0.003, "warmup": 10, "weight_decay": 0.1, "clip": 1.0 }},
            "sequences": 4, "steps": 40, "operand_bits": {operand_bits}, "seed": 1 }}"#
    );
    let model = LanguageModel::parse("tiny.json", json.as_bytes()).unwrap();
    let data = Text::parse(&text).unwrap().split(model.context()).unwrap();
    let rows = data.training.features.ty().dims()[0];
    let training = Training::of_language(&model, data.classes.len() as u32, rows).unwrap();
    (model, training, data)
}

type Prepared = (CheckedProgram, StageInfo, Vec<Tensor>, Vec<Tensor>);

fn compile(training: &Training, calibration: &Calibration, data: &Dataset, cut: &[Range<usize>]) -> Vec<Prepared> {
    let commit = |_: &Tensor| TensorRoot::default();
    let compiled = training.compile(calibration, &data.training, cut, commit).unwrap();
    let prepare = |stage: CompiledStage| {
        let state = init::state(&stage.program, &training.state).unwrap();
        (CheckedProgram::new(stage.program).unwrap(), stage.info, stage.constants, state)
    };
    compiled.into_iter().map(prepare).collect()
}

fn stages(prepared: &[Prepared]) -> Vec<Stage<'_>> {
    prepared.iter().map(|(program, info, constants, state)| Stage { program, info, constants, state }).collect()
}

#[test]
fn integers_learn_what_floats_learn() {
    for (bits, tolerance) in [(16, 5e-4), (8, 3e-3)] {
        let (model, training, data) = king_james(bits);
        let calibration = training.calibrate(&data.training, 8, 2).unwrap();
        let mut prepared = compile(&training, &calibration, &data, &[0..4]);
        let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(9), || Reference).unwrap();
        let floats = FloatData { features: data.training.features.to_f64(), labels: data.training.labels.to_f64() };
        let (mut state, mut losses) = (training.state.clone(), Vec::new());
        for step in 0..model.steps() {
            let exact = pipeline.step(step, Schedule::OneByOne).unwrap();
            assert_eq!(exact.rows, 4 * 32);
            let context = StepContext { job_key: job_key(9), step };
            let values = Values::compute(&training.graph, &floats, &state, &context);
            let loss = values.loss();
            assert!((exact.loss() / loss - 1.0).abs() < tolerance, "{bits} bits, step {step}: {} {loss}", exact.loss());
            state = values.next_state();
            losses.push(loss);
        }
        assert!(losses[39] < 0.65 * losses[0], "from {} to {}", losses[0], losses[39]);
        prepared[0].3 = pipeline.state().unwrap().remove(0);
        let held_out = evaluate(&Reference, &stages(&prepared), &few(&data.held_out)).unwrap();
        assert_eq!(held_out.rows, 5 * 32);
        assert!((2.0..3.2).contains(&held_out.loss()), "{}", held_out.loss());
    }
}

/// The first sequences of a set.
fn few(set: &TrainingSet) -> TrainingSet {
    let first = |tensor: &Tensor| {
        let ty = TensorType::new(tensor.ty().bits(), 0, &[5, tensor.ty().dims()[1]]).unwrap();
        Tensor::from_wide(ty.clone(), &tensor.mantissas().to_vec()[..ty.elements() as usize]).unwrap()
    };
    TrainingSet { features: first(&set.features), labels: first(&set.labels) }
}

#[test]
fn state_does_not_depend_on_the_cut() {
    let (_, training, data) = king_james(8);
    let calibration = training.calibrate(&data.training, 3, 2).unwrap();
    let mut states = Vec::new();
    for (cut, schedule) in [
        (vec![0..4], Schedule::AllForward),
        (vec![0..1, 1..3, 3..4], Schedule::OneByOne),
        (vec![0..2, 2..4], Schedule::AllForward),
    ] {
        let prepared = compile(&training, &calibration, &data, &cut);
        let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(4), || Reference).unwrap();
        for step in 0..3 {
            pipeline.step(step, schedule).unwrap();
        }
        states.push(pipeline.state().unwrap().concat());
    }
    assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "the cut changed the state");
}

#[test]
fn other_architectures_are_refused() {
    use tensorlink_graph::transformer::random::{bert, gpt2};
    for (architecture, what) in [(bert(TINY), "an encoder"), (gpt2(TINY), "output")] {
        let refused = StepGraph::language(&architecture, &recipe(6, 1, 8, 1), 2).unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
    }
}
