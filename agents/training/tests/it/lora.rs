//! Adapters: their gradients, that integers learn what floats learn, and that a model with them added in is the
//! adapted one.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use tensorlink_model::lora::{Lora, Target};
use tensorlink_model::random::{Dimensions, gpt2, llama, weights};
use tensorlink_model::{Architecture, Matrix, Output};
use tensorlink_num::StepContext;
use tensorlink_program::Reference;
use tensorlink_training::calibrate::{float_data, job_key};
use tensorlink_training::data::text::Text;
use tensorlink_training::model::language::Origin;
use tensorlink_training::step::StepGraph;
use tensorlink_training::step::float::{FloatData, FloatState, Values};
use tensorlink_training::step::language::{Adapters, Recipe};
use tensorlink_training::{Dataset, LanguageModel, LocalPipeline, Schedule, Training, evaluate};

use crate::language::cuts::check_two_stages;
use crate::language::gradients::check_gradients_of;
use crate::language::{TINY, compile, few, floats_of, recipe, stages};

fn lora(targets: &[Target]) -> Lora {
    Lora { rank: 3, alpha: 6, targets: targets.iter().copied().collect() }
}

fn adapted(lora: &Lora, architecture: &Architecture) -> Recipe {
    let base = Arc::new(weights(architecture, 5).unwrap());
    Recipe { adapters: Some(Adapters { lora: lora.clone(), base }), ..recipe(6, 2, 8, 3) }
}

/// Adapters with B grown, and their moments.
fn state(lora: &Lora, architecture: &Architecture) -> FloatState {
    let mut state = FloatState::new();
    for (name, values) in lora.grown(architecture, 3) {
        for moment in ["first", "second"] {
            state.insert(format!("{name}.{moment}"), vec![0.0; values.len()]);
        }
        state.insert(name, values.iter().map(|value| f64::from(*value)).collect());
    }
    state
}

#[test]
fn gradients_of_adapters_match_finite_differences() {
    let tied = Architecture { output: Output::Logits { tied: true }, attention_bias: true, ..llama(TINY) };
    for (architecture, targets) in [
        (llama(TINY), &Target::ALL[..]),
        (tied, &[Target::Query, Target::Value]),
        (gpt2(TINY), &[Target::Output, Target::Up, Target::Down]),
    ] {
        let lora = lora(targets);
        lora.check(&architecture).unwrap();
        let graph = StepGraph::language(&architecture, &adapted(&lora, &architecture), 5).unwrap();
        assert!(check_gradients_of(&graph, &state(&lora, &architecture)) > 20);
    }
}

/// The same loss, whether adapters stand beside the weights or are added to them.
#[test]
fn merged_weights_are_the_adapted_model() {
    for (architecture, targets) in
        [(llama(TINY), &Target::ALL[..]), (gpt2(TINY), &[Target::Output, Target::Up, Target::Down])]
    {
        let lora = lora(targets);
        let recipe = adapted(&lora, &architecture);
        let beside = state(&lora, &architecture);
        let matrices: BTreeMap<String, Matrix> = lora
            .parameters(&architecture)
            .into_iter()
            .map(|p| {
                let values = beside[&p.name].iter().map(|value| *value as f32).collect();
                (p.name, Matrix::new(p.rows, p.columns, values).unwrap())
            })
            .collect();
        let base = &recipe.adapters.as_ref().unwrap().base;
        let merged = lora.merge(&architecture, base, &matrices).unwrap();
        assert_ne!(&merged, base.as_ref());
        let whole: FloatState = merged.iter().map(|(name, matrix)| (name.to_owned(), floats_of(matrix))).collect();
        let draw = |i: u32| f64::from(i * 7 % 11);
        let data = FloatData { features: (0..30).map(draw).collect(), labels: (1..=30).map(draw).collect() };
        let context = StepContext { job_key: job_key(3), step: 1 };
        let loss = |recipe: &Recipe, state: &FloatState| {
            let graph = StepGraph::language(&architecture, recipe, 5).unwrap();
            Values::compute(&graph, &data, state, &context).loss()
        };
        let [a, b] = [loss(&recipe, &beside), loss(&Recipe { adapters: None, ..recipe.clone() }, &whole)];
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

/// A model of random weights, and adapters that are trained on the King James text.
fn king_james(architecture: &Architecture, targets: &str, bits: u8) -> (LanguageModel, Training, Dataset) {
    let packed = include_bytes!("../../../../examples/kjv-1100k.txt.gz");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut text).unwrap();
    let json = format!(
        r#"{{ "name": "tuned",
            "from": {{ "folder": "base", "context": 32, "lora": {{ "rank": 4, "alpha": 8, "targets": [{targets}] }} }},
            "optimizer": {{ "learning_rate": 0.01, "warmup": 10, "weight_decay": 0.1, "clip": 1.0 }},
            "sequences": 4, "steps": 40, "operand_bits": {bits}, "seed": 1 }}"#
    );
    let model = LanguageModel::parse("tuned.json", json.as_bytes()).unwrap();
    let data = Text::parse(&text).unwrap().split(model.context()).unwrap();
    let rows = data.training.features.ty().dims()[0];
    let architecture = Architecture { vocabulary: data.classes.len() as u32, ..architecture.clone() };
    let base = weights(&architecture, 2).unwrap();
    let Origin::From(imported) = model.origin() else { panic!("{:?}", model.origin()) };
    let training = Training::of_imported(&model, imported, (&architecture, &base), rows).unwrap();
    (model, training, data)
}

const SIZE: Dimensions =
    Dimensions { vocabulary: 0, width: 32, layers: 2, heads: 4, kv_heads: 2, hidden: 64, context: 32 };

#[test]
fn adapters_learn_in_integers_what_they_learn_in_floats() {
    let all = r#""query", "key", "value", "output", "up", "gate", "down""#;
    for (architecture, targets, bits, tolerance) in
        [(llama(SIZE), all, 16, 2e-3), (llama(SIZE), all, 8, 1e-2), (gpt2(SIZE), r#""output", "up", "down""#, 16, 2e-3)]
    {
        let (model, training, data) = king_james(&architecture, targets, bits);
        let calibration = training.calibrate(&data.training, 8, 2).unwrap();
        let mut prepared = compile(&training, &calibration, &data, &[0..1, 1..2]);
        let states: usize = prepared.iter().map(|(program, ..)| program.state.len()).sum();
        assert_eq!(states, training.state.len(), "adapters and their moments alone");
        let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(9), || Reference).unwrap();
        let floats = float_data(&data.training);
        let (mut state, mut losses) = (training.state.clone(), Vec::new());
        for step in 0..model.steps() {
            let exact = pipeline.step(step, Schedule::OneByOne).unwrap().loss();
            let context = StepContext { job_key: job_key(9), step };
            let values = Values::compute(&training.graph, &floats, &state, &context);
            let loss = values.loss();
            assert!((exact / loss - 1.0).abs() < tolerance, "{bits} bits, step {step}: {exact} {loss}");
            state = values.next_state();
            losses.push(loss);
        }
        assert!(losses[39] < 0.9 * losses[0], "from {} to {}", losses[0], losses[39]);
        for (stage, state) in prepared.iter_mut().zip(pipeline.state().unwrap()) {
            stage.3 = state;
        }
        let held_out = evaluate(&Reference, &stages(&prepared), &few(&data.held_out)).unwrap();
        assert!(held_out.loss() < losses[0], "{}", held_out.loss());
    }
}

/// Frozen weights bind no stages together, and are the same for all who share the sequences.
#[test]
fn adapters_do_not_depend_on_the_cut() {
    let tied = Architecture { output: Output::Logits { tied: true }, ..llama(SIZE) };
    let (_, training, data) = king_james(&tied, r#""query", "value""#, 8);
    check_two_stages(training, &data, 1);
}
