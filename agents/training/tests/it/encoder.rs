//! The training step of an encoder that tells classes of texts apart: its gradients, what padding does, and that
//! integers learn what floats learn.

use std::io::Read;

use tensorlink_model::random::{bert, gpt2, weights};
use tensorlink_model::{Activation, Architecture, Output};
use tensorlink_num::StepContext;
use tensorlink_program::Reference;
use tensorlink_training::calibrate::{float_data, job_key};
use tensorlink_training::data::labelled::LabelledTexts;
use tensorlink_training::model::language::Origin;
use tensorlink_training::step::StepGraph;
use tensorlink_training::step::float::{FloatData, Values};
use tensorlink_training::step::language::Recipe;
use tensorlink_training::{Dataset, LanguageModel, LocalPipeline, Schedule, Training, evaluate};

use crate::language::cuts::check_two_stages;
use crate::language::gradients::check_gradients_on;
use crate::language::{TINY, compile, float_state, recipe, stages};

const CLASSES: u32 = 3;
/// The token that stands for nothing.
const PADDING: u32 = 0;

fn encoder() -> Architecture {
    Architecture { output: Output::Classes(CLASSES), ..bert(TINY) }
}

fn padded(tokens: u32) -> Recipe {
    Recipe { padding: Some(PADDING), ..recipe(tokens, 2, 8, 3) }
}

/// Five texts of 2 to 4 tokens, in rows of so many.
fn texts(tokens: u32) -> FloatData {
    let token = |row: u32, place: u32| if place < row % 3 + 2 { 1 + (row * 6 + place) * 7 % 10 } else { PADDING };
    let features = (0..5).flat_map(|row| (0..tokens).map(move |place| f64::from(token(row, place)))).collect();
    FloatData { features, labels: (0..5).map(|row| f64::from(row % CLASSES)).collect() }
}

#[test]
fn gradients_match_finite_differences() {
    // As GPT-2 is, but for what it sees and gives.
    let before = Architecture { causal: false, output: Output::Classes(CLASSES), ..gpt2(TINY) };
    let relu = Architecture { activation: Activation::Relu, token_types: false, ..encoder() };
    for architecture in [encoder(), before, relu] {
        let graph = StepGraph::language(&architecture, &padded(6), 5).unwrap();
        assert!(check_gradients_on(&graph, &float_state(&architecture, 5), &texts(6), 2.0) > 100);
    }
}

/// A text is the same to the model, whatever follows it and however long.
#[test]
fn padding_changes_nothing() {
    let architecture = encoder();
    let state = float_state(&architecture, 5);
    // Of rows of so many tokens, the vector of padding another.
    let after = |tokens: u32, nudge: f64| {
        let mut state = state.clone();
        let table = state.get_mut("embedding.tokens").unwrap();
        table.iter_mut().take(TINY.width as usize).for_each(|x| *x += nudge);
        let graph = StepGraph::language(&architecture, &padded(tokens), 5).unwrap();
        let data = texts(tokens);
        let values = Values::compute(&graph, &data, &state, &StepContext { job_key: job_key(5), step: 0 });
        let mut next = values.next_state();
        next.get_mut("embedding.tokens").unwrap().drain(..TINY.width as usize);
        (values.loss(), next)
    };
    let (loss, next) = after(6, 0.0);
    for (tokens, nudge) in [(6, 0.7), (4, 0.0), (5, -2.0)] {
        let (same, other) = after(tokens, nudge);
        assert!((loss - same).abs() < 1e-12, "{loss} {same}");
        for (name, values) in &next {
            assert!(values.iter().zip(&other[name]).all(|(a, b)| (a - b).abs() < 1e-9), "{name} of {tokens} tokens");
        }
    }
}

/// A prime number beyond a reduction's length: such a vocabulary has no equal parts.
const PRIME: u32 = 4099;

/// A small encoder of at least so many tokens, and the verses of the King James text that it tells apart.
fn verses(fields: &str, least: u32) -> (LanguageModel, Training, Dataset) {
    let packed = include_bytes!("../../../../examples/verses.csv.gz");
    let mut csv = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut csv).unwrap();
    let json = format!(
        r#"{{ "name": "tiny", "encoder": {{ "width": 32, "layers": 2, "heads": 4, "hidden": 64, "context": 48 }},
            "optimizer": {{ "learning_rate": 0.003, "warmup": 10, "weight_decay": 0.1, "clip": 1.0 }},
            "sequences": 4, "steps": 40, {fields}, "seed": 1 }}"#
    );
    let model = LanguageModel::parse("tiny.json", json.as_bytes()).unwrap();
    let Origin::Encoder(encoder) = model.origin() else { panic!("{:?}", model.origin()) };
    let texts = LabelledTexts::parse(&csv).unwrap();
    let (mut ids, _) = texts.characters().unwrap();
    ids.vocabulary = ids.vocabulary.max(least);
    let data = texts.split(&ids, model.context(), model.seed()).unwrap();
    let architecture = encoder.architecture(ids.vocabulary, 2);
    let weights = weights(&architecture, model.seed()).unwrap();
    let rows = data.training.features.ty().dims()[0];
    let training = Training::of_encoder(&model, (&architecture, &weights), ids.padding, rows).unwrap();
    (model, training, data)
}

#[test]
fn integers_learn_what_floats_learn() {
    for (bits, least, tolerance, mean) in [(16, 0, 4e-3, 2e-4), (8, 0, 3e-2, 2e-3), (16, PRIME, 4e-3, 2e-4)] {
        let (model, training, data) = verses(&format!(r#""operand_bits": {bits}"#), least);
        let calibration = training.calibrate(&data.training, 8, 2).unwrap();
        let mut prepared = compile(&training, &calibration, &data, &[0..2, 2..4]);
        let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(9), || Reference).unwrap();
        let floats = float_data(&data.training);
        let (mut state, mut losses) = (training.state.clone(), [0.0; 2]);
        for step in 0..model.steps() {
            let exact = pipeline.step(step, Schedule::OneByOne).unwrap();
            assert_eq!(exact.rows, 4);
            let values = Values::compute(&training.graph, &floats, &state, &StepContext { job_key: job_key(9), step });
            let loss = values.loss();
            let apart = exact.loss() / loss - 1.0;
            assert!(apart.abs() < tolerance, "{bits} bits, step {step}: {} {loss}", exact.loss());
            losses = [losses[0] + exact.loss(), losses[1] + loss];
            state = values.next_state();
        }
        assert!((losses[0] / losses[1] - 1.0).abs() < mean, "{bits} bits: {losses:?}");
        let states = pipeline.state().unwrap();
        for (stage, state) in prepared.iter_mut().zip(states) {
            stage.3 = state;
        }
        let held_out = evaluate(&Reference, &stages(&prepared), &data.held_out).unwrap();
        assert_eq!(held_out.rows, 405);
        // Forty steps of four texts tell little; a guess by the classes' shares has 0.682.
        assert!((0.5..0.7).contains(&held_out.loss()), "{}", held_out.loss());
    }
}

#[test]
fn state_does_not_depend_on_the_cut() {
    let (_, training, data) = verses(r#""operand_bits": 8, "dropout": 0.1"#, 0);
    check_two_stages(training, &data, 2);
}
