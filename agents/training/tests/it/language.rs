//! The training step of a language model: its gradients, and that integers learn what floats learn.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;

use tensorlink_model::partition::{PartitionError, partition};
use tensorlink_model::random::{Dimensions, gemma3, gpt2, llama, weights};
use tensorlink_model::{Activation, Architecture, Matrix, Output};
use tensorlink_num::{StepContext, Tensor};
use tensorlink_program::check::{only_exchanges, rounds};
use tensorlink_program::{CheckedProgram, Reference};
use tensorlink_training::calibrate::{Calibration, float_data, job_key};
use tensorlink_training::data::text::{Text, Tokens};
use tensorlink_training::metrics::saturation;
use tensorlink_training::model::language::Origin;
use tensorlink_training::step::StepGraph;
use tensorlink_training::step::float::{FloatData, FloatState, Values};
use tensorlink_training::step::language::{AdamW, Recipe};
use tensorlink_training::{
    CompiledStage, Dataset, LanguageModel, LocalPipeline, Schedule, Stage, StageInfo, Training, TrainingSet, evaluate,
    init,
};
use tensorlink_types::{TensorRoot, TensorType};

pub(crate) const TINY: Dimensions =
    Dimensions { vocabulary: 11, width: 8, layers: 2, heads: 4, kv_heads: 2, hidden: 12, context: 6 };

pub(crate) fn recipe(tokens: u32, sequences: u32, operand_bits: u8, steps: u32) -> Recipe {
    let warm = |step: u32| 3e-3 * (f64::from(step + 1) / 20.0).min(1.0);
    let optimizer = AdamW {
        rates: (0..steps).map(warm).collect(),
        beta1: 0.9,
        beta2: 1.0 - 41.0 / 4096.0,
        weight_decay: 0.1,
        clip: 1.0,
    };
    Recipe { tokens, sequences, operand_bits, dropout: 0.0, optimizer, padding: None, adapters: None }
}

pub(crate) fn floats_of(matrix: &Matrix) -> Vec<f64> {
    matrix.values().iter().map(|w| f64::from(*w)).collect()
}

pub(crate) fn float_state(architecture: &Architecture, seed: u64) -> FloatState {
    let drawn = weights(architecture, seed).unwrap();
    let mut state = BTreeMap::new();
    for (name, matrix) in drawn.iter() {
        let values = floats_of(matrix);
        for moment in ["first", "second"] {
            state.insert(format!("{name}.{moment}"), vec![0.0; values.len()]);
        }
        state.insert(name.to_owned(), values);
    }
    state
}

#[test]
fn gradients_match_finite_differences() {
    let untied = Output::Logits { tied: false };
    check_gradients(&llama(TINY));
    check_gradients(&gpt2(TINY));
    // As Qwen 2 is.
    check_gradients(&Architecture { attention_bias: true, output: Output::Logits { tied: true }, ..llama(TINY) });
    // As Qwen 3 is.
    check_gradients(&Architecture { query_key_norm: true, ..llama(TINY) });
    check_gradients(&gemma3(TINY));
    let positions = llama(TINY).positions;
    check_gradients(&Architecture { activation: Activation::Relu, output: untied, positions, ..gpt2(TINY) });
    check_gradients(&Architecture { activation: Activation::Gelu, gated: true, kv_heads: 2, ..gpt2(TINY) });
    // Longer rows than one operator reduces.
    check_gradients(&gpt2(Dimensions { vocabulary: 4100, hidden: 4098, layers: 1, ..TINY }));
}

fn check_gradients(architecture: &Architecture) {
    let rows = 5;
    let graph = StepGraph::language(architecture, &recipe(6, 2, 8, 3), rows).unwrap();
    assert!(check_gradients_of(&graph, &float_state(architecture, 5)) > 100);
}

/// The gradient by values of every parameter of a state that has moments; how many.
pub(crate) fn check_gradients_of(graph: &StepGraph, state: &FloatState) -> u32 {
    let rows = 5;
    let draw = |i: u32| f64::from(i * 7 % 11);
    let data = FloatData { features: (0..rows * 6).map(draw).collect(), labels: (1..=rows * 6).map(draw).collect() };
    check_gradients_on(graph, state, &data, 12.0)
}

/// The same on some data, of which a step draws so many labels.
pub(crate) fn check_gradients_on(graph: &StepGraph, state: &FloatState, data: &FloatData, labels: f64) -> u32 {
    let context = StepContext { job_key: job_key(3), step: 1 };
    let loss = |state: &FloatState| Values::compute(graph, data, state, &context).loss() * labels;
    let values = Values::compute(graph, data, state, &context);
    let mut checked = 0;
    for (name, weights) in state.iter().filter(|(name, _)| !name.ends_with("first") && !name.ends_with("second")) {
        let sum = graph.nodes().find(|(_, node)| node.site == format!("{name}.grad.sum"));
        let (sum, _) = sum.unwrap_or_else(|| panic!("{name} has a gradient"));
        for i in (0..weights.len()).step_by((weights.len() / 12).max(7)) {
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
    checked
}

/// Shapes of decoders, as model files have them.
pub(crate) const LLAMA: &str = r#""kv_heads": 2"#;
pub(crate) const GPT2: &str = r#""shape": "gpt2""#;
const EIGHT_BITS: &str = r#""operand_bits": 8"#;

/// A language model of a shape with the King James text, the prepared training, and the text's sequences.
fn king_james(shape: &str, operand_bits: u8) -> (LanguageModel, Training, Dataset) {
    of_sizes(shape, operand_bits, (64, 0))
}

/// The same at another learning rate.
fn at_rate(learning_rate: f64) -> (LanguageModel, Training, Dataset) {
    trained_by(learning_rate, LLAMA, EIGHT_BITS, (64, 0))
}

/// The same with an MLP of another length, and at least so many tokens.
fn of_sizes(shape: &str, operand_bits: u8, sizes: (u32, u32)) -> (LanguageModel, Training, Dataset) {
    trained_by(0.003, shape, &format!(r#""operand_bits": {operand_bits}"#), sizes)
}

/// The same with these fields beside.
pub(crate) fn trained_by(
    learning_rate: f64,
    shape: &str,
    fields: &str,
    (hidden, least): (u32, u32),
) -> (LanguageModel, Training, Dataset) {
    let packed = include_bytes!("../../../../examples/kjv-1100k.txt.gz");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut text).unwrap();
    let json = format!(
        r#"{{ "name": "tiny",
            "decoder": {{ "width": 32, "layers": 2, "heads": 4, {shape}, "hidden": {hidden}, "context": 32 }},
            "optimizer": {{ "learning_rate": {learning_rate}, "warmup": 10, "weight_decay": 0.1, "clip": 1.0 }},
            "sequences": 4, "steps": 40, {fields}, "seed": 1 }}"#
    );
    let model = LanguageModel::parse("tiny.json", json.as_bytes()).unwrap();
    let data = Text::parse(&text).unwrap().split(model.context()).unwrap();
    let rows = data.training.features.ty().dims()[0];
    let Origin::Decoder(decoder) = model.origin() else { panic!("{:?}", model.origin()) };
    let training = Training::of_language(&model, decoder, least.max(data.classes.len() as u32), rows).unwrap();
    (model, training, data)
}

pub(crate) type Prepared = (CheckedProgram, StageInfo, Vec<Tensor>, Vec<Tensor>);

pub(crate) fn compile(
    training: &Training,
    calibration: &Calibration,
    data: &Dataset,
    cut: &[Range<usize>],
) -> Vec<Prepared> {
    let commit = |_: &Tensor| TensorRoot::default();
    let compiled = training.compile(calibration, &data.training, cut, commit).unwrap();
    let prepare = |stage: CompiledStage| {
        let state = init::state(&stage.program, &training.state).unwrap();
        (CheckedProgram::new(stage.program).unwrap(), stage.info, stage.constants, state)
    };
    compiled.into_iter().map(prepare).collect()
}

pub(crate) fn stages(prepared: &[Prepared]) -> Vec<Stage<'_>> {
    prepared.iter().map(|(program, info, constants, state)| Stage { program, info, constants, state }).collect()
}

#[test]
fn integers_learn_what_floats_learn() {
    for (shape, bits, tolerance) in [(LLAMA, 16, 5e-4), (LLAMA, 8, 3e-3), (GPT2, 16, 5e-4), (GPT2, 8, 3e-3)] {
        let (model, training, data) = king_james(shape, bits);
        let calibration = training.calibrate(&data.training, 8, 2).unwrap();
        let mut prepared = compile(&training, &calibration, &data, &[0..training.layers.len()]);
        let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(9), || Reference).unwrap();
        let floats = float_data(&data.training);
        let (mut state, mut losses) = (training.state.clone(), Vec::new());
        for step in 0..model.steps() {
            let exact = pipeline.step(step, Schedule::OneByOne).unwrap();
            assert_eq!(exact.rows, 4 * 32);
            let context = StepContext { job_key: job_key(9), step };
            let values = Values::compute(&training.graph, &floats, &state, &context);
            let loss = values.loss();
            assert!(
                (exact.loss() / loss - 1.0).abs() < tolerance,
                "{shape}, {bits} bits, step {step}: {} {loss}",
                exact.loss()
            );
            state = values.next_state();
            losses.push(loss);
        }
        assert!(losses[39] < 0.66 * losses[0], "from {} to {}", losses[0], losses[39]);
        prepared[0].3 = pipeline.state().unwrap().remove(0);
        let held_out = evaluate(&Reference, &stages(&prepared), &few(&data.held_out)).unwrap();
        assert_eq!(held_out.rows, 5 * 32);
        assert!((2.0..3.2).contains(&held_out.loss()), "{}", held_out.loss());
    }
}

/// A training that leaves what calibration saw is told by its weights before its loss is no number.
#[test]
fn weights_that_outgrow_their_types_are_seen() {
    for (rate, outgrown) in [(0.003, false), (0.5, true)] {
        let (_, training, data) = at_rate(rate);
        let calibration = training.calibrate(&data.training, 2, 2).unwrap();
        let prepared = compile(&training, &calibration, &data, &[0..2, 2..4]);
        let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(9), || Reference).unwrap();
        for step in 0..20 {
            pipeline.step(step, Schedule::OneByOne).unwrap();
        }
        for stage in pipeline.executors() {
            let share = saturation(stage).unwrap().unwrap();
            assert_eq!(share > 0.05, outgrown, "at {rate}: {share}");
        }
    }
}

/// A vocabulary and an MLP of which no operator reduces a whole row.
#[test]
fn long_rows_are_reduced_in_parts() {
    let (_, training, data) = of_sizes(r#""tied": true"#, 8, (4160, 5000));
    let calibration = training.calibrate(&data.training, 2, 2).unwrap();
    let prepared = compile(&training, &calibration, &data, &[0..1]);
    let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(9), || Reference).unwrap();
    let floats = float_data(&data.training);
    let (mut state, mut losses) = (training.state.clone(), Vec::new());
    for step in 0..3 {
        let exact = pipeline.step(step, Schedule::OneByOne).unwrap().loss();
        let values = Values::compute(&training.graph, &floats, &state, &StepContext { job_key: job_key(9), step });
        assert!((exact / values.loss() - 1.0).abs() < 3e-3, "step {step}: {exact} {}", values.loss());
        state = values.next_state();
        losses.push(exact);
    }
    assert!(losses[2] < losses[0], "{losses:?}");
}

/// The first sequences of a set.
pub(crate) fn few(set: &TrainingSet) -> TrainingSet {
    let first = |tensor: &Tensor| {
        let dims: Vec<u32> = [5].into_iter().chain(tensor.ty().dims()[1..].iter().copied()).collect();
        let ty = TensorType::new(tensor.ty().bits(), 0, &dims).unwrap();
        Tensor::from_wide(ty.clone(), &tensor.mantissas().to_vec()[..ty.elements() as usize]).unwrap()
    };
    TrainingSet { features: first(&set.features), labels: first(&set.labels) }
}

#[test]
fn state_does_not_depend_on_the_cut() {
    for shape in [LLAMA.to_owned(), format!(r#"{GPT2}, "tied": false"#)] {
        check_cuts(&shape);
    }
}

fn check_cuts(shape: &str) {
    let (_, training, data) = king_james(shape, 8);
    let calibration = training.calibrate(&data.training, 3, 2).unwrap();
    let mut states = Vec::new();
    for (cut, schedule) in [
        (vec![0..4], Schedule::AllForward),
        (vec![0..1, 1..3, 3..4], Schedule::OneByOne),
        (vec![0..2, 2..4], Schedule::AllForward),
    ] {
        states.push(after_three_steps((&training, &calibration), &data, &cut, schedule).concat());
    }
    assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "{shape}: the cut changed the state");
}

/// States of the stages of a cut.
fn after_three_steps(
    (training, calibration): (&Training, &Calibration),
    data: &Dataset,
    cut: &[Range<usize>],
    schedule: Schedule,
) -> Vec<Vec<Tensor>> {
    let prepared = compile(training, calibration, data, cut);
    let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(4), || Reference).unwrap();
    for step in 0..3 {
        pipeline.step(step, schedule).unwrap();
    }
    pipeline.state().unwrap()
}

/// However a training is cut into two stages at a layer, or its sequences shared among two, the states are those of
/// one alone.
pub(crate) fn check_two_stages(training: Training, data: &Dataset, layer: usize) {
    let calibration = training.calibrate(&data.training, 3, 2).unwrap();
    let run = |training: &Training, cut: &[Range<usize>]| {
        after_three_steps((training, &calibration), data, cut, Schedule::OneByOne)
    };
    let layers = training.layers.len();
    let alone = run(&training, &[0..layers]).concat();
    assert!(run(&training, &[0..layer, layer..layers]).concat() == alone, "the cut changed the state");
    let shared = training.shared(2).unwrap();
    for own in run(&shared, &[0..layers]) {
        assert!(own == alone, "the share changed the state");
    }
    for own in run(&shared, &[0..layer, layer..layers]).chunks(2) {
        assert!(own.concat() == alone, "the cut share changed the state");
    }
}

/// Stages that share the sequences end each step in the very state of one that has them all, and see the same losses;
/// each is the whole model.
#[test]
fn state_does_not_depend_on_who_has_which_sequences() {
    for shape in [LLAMA, GPT2] {
        let (_, training, data) = king_james(shape, 8);
        let calibration = training.calibrate(&data.training, 3, 2).unwrap();
        let alone = compile(&training, &calibration, &data, &[0..training.layers.len()]);
        let mut alone = LocalPipeline::new(&stages(&alone), job_key(4), || Reference).unwrap();
        let losses = [0, 1, 2].map(|step| alone.step(step, Schedule::OneByOne).unwrap());
        let state = alone.state().unwrap().remove(0);
        for count in [2, 3, 4] {
            let shared = training.clone().shared(count).unwrap();
            let cut = shared.cut(&vec![u64::MAX; count.into()]).unwrap();
            assert_eq!(cut, [0..training.layers.len()]);
            let mut prepared = compile(&shared, &calibration, &data, &cut);
            assert_eq!(prepared.len(), usize::from(count));
            assert!(prepared.iter().all(|(program, ..)| only_exchanges(program, &(0..program.micro_batches))));
            let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(4), || Reference).unwrap();
            for (step, loss) in (0..).zip(&losses) {
                let schedule = if step == 1 { Schedule::OneByOne } else { Schedule::AllForward };
                let seen = pipeline.step(step, schedule).unwrap();
                assert!((seen.loss() - loss.loss()).abs() < 1e-12 && seen.rows == loss.rows, "{seen:?} {loss:?}");
            }
            for (stage, own) in pipeline.state().unwrap().into_iter().enumerate() {
                assert!(own == state, "{shape}: stage {stage} of {count}");
                prepared[stage].3 = own;
            }
            let held_out = |stages: &[Stage<'_>]| evaluate(&Reference, stages, &few(&data.held_out)).unwrap();
            let (whole, last) = (held_out(&stages(&prepared)), held_out(&stages(&prepared[1..2])));
            assert_eq!((whole.loss(), whole.rows), (last.loss(), 5 * 32));
        }
        let refused = training.shared(5).unwrap_err().to_string();
        assert!(refused.contains("5 shares of 4 sequences"), "{refused}");
    }
}

/// Shares that are pipelines themselves, of as many sequences or not, end each step in the state of one worker alone.
/// Their sums are in a round of their own, after all sequences, and the norm of what they come to in another.
#[test]
fn state_does_not_depend_on_shares_that_are_cut() {
    let (_, training, data) = king_james(LLAMA, 8);
    let calibration = training.calibrate(&data.training, 3, 2).unwrap();
    let layers = training.layers.len();
    let alone = after_three_steps((&training, &calibration), &data, &[0..layers], Schedule::OneByOne).remove(0);
    for (shares, parts, schedule) in [
        (2, 2, Schedule::AllForward),
        (3, 2, Schedule::OneByOne),
        (2, 3, Schedule::AllForward),
        (4, 2, Schedule::OneByOne),
    ] {
        let shared = training.clone().shared(shares).unwrap();
        let cut = shared.cut(&vec![u64::MAX / 64; usize::from(shares) * parts]).unwrap();
        assert_eq!(cut.len(), parts);
        let mut prepared = compile(&shared, &calibration, &data, &cut);
        let sequences = 4_u32.div_ceil(shares.into());
        for (program, ..) in &prepared {
            let [compute, exchange, norm] = &rounds(program)[..] else { panic!("{:?}", rounds(program)) };
            assert_eq!((compute.clone(), exchange.start, norm.len()), (0..sequences, sequences, 1));
            assert!(only_exchanges(program, exchange) && !only_exchanges(program, compute));
        }
        let states = after_three_steps((&shared, &calibration), &data, &cut, schedule);
        for share in states.chunks(parts) {
            assert!(share.concat() == alone, "{shares} shares of {parts} stages");
        }
        for (stage, state) in prepared.iter_mut().zip(states) {
            stage.3 = state;
        }
        let held_out = |stages: &[Stage<'_>]| evaluate(&Reference, stages, &few(&data.held_out)).unwrap();
        let (all, first) = (held_out(&stages(&prepared)), held_out(&stages(&prepared[..parts])));
        assert_eq!((all.loss(), all.rows), (first.loss(), 5 * 32));
    }
    let uneven = training.shared(2).unwrap().cut(&[u64::MAX; 3]).unwrap_err();
    assert_eq!(uneven, PartitionError::Shares { stages: 3, shares: 2 });
}

#[test]
fn a_tied_model_is_one_stage() {
    let (_, training, _) = king_james(GPT2, 8);
    let bytes: Vec<u64> = training.layers.iter().map(|layer| layer.bytes).collect();
    assert_eq!(partition(&bytes, &[u64::MAX]).unwrap(), [0..1]);
    let refused = partition(&bytes, &[u64::MAX; 2]).unwrap_err().to_string();
    assert!(refused.contains(r#"write `"tied": false`"#) && refused.contains("untie"), "{refused}");
}

/// What was trained elsewhere begins where it ended, with a head of its own or without.
#[test]
fn imported_models_begin_as_they_are() {
    let (folder, rows) = (gpt2(TINY), 5);
    let weights = weights(&folder, 4).unwrap();
    let ids: Vec<u32> = (0..rows * 6 + 6).map(|i| i * 7 % 11).collect();
    let data = Tokens { ids, vocabulary: folder.vocabulary }.split(6).unwrap().training;
    let floats = float_data(&data);
    let begun = |untie: bool| {
        let json = format!(
            r#"{{ "name": "tune", "from": {{ "folder": "gpt2", "context": 6, "untie": {untie} }},
                "optimizer": {{ "learning_rate": 0.003, "warmup": 1, "weight_decay": 0.1, "clip": 1.0 }},
                "sequences": 2, "steps": 3, "operand_bits": 16, "seed": 1 }}"#
        );
        let model = LanguageModel::parse("tune.json", json.as_bytes()).unwrap();
        let Origin::From(imported) = model.origin() else { panic!("{:?}", model.origin()) };
        let training = Training::of_imported(&model, imported, (&folder, &weights), rows).unwrap();
        let cut = if untie { vec![0..2, 2..4] } else { vec![0..1] };
        let calibration = training.calibrate(&data, 3, 1).unwrap();
        let commit = |_: &Tensor| TensorRoot::default();
        assert_eq!(training.compile(&calibration, &data, &cut, commit).unwrap().len(), cut.len());
        let context = StepContext { job_key: job_key(3), step: 0 };
        let values = Values::compute(&training.graph, &floats, &training.state, &context);
        assert_eq!(training.state["embedding.tokens"], floats_of(weights.get("embedding.tokens").unwrap()));
        values.loss()
    };
    assert_eq!(begun(false), begun(true));
}

#[test]
fn other_architectures_are_refused() {
    use tensorlink_model::random::bert;
    let both_ways = Architecture { causal: false, ..gpt2(TINY) };
    let classes = Architecture { output: Output::Classes(3), ..gpt2(TINY) };
    for (architecture, what) in [
        (bert(TINY), "an embedding is not trained yet"),
        (both_ways, "an encoder with a logit for each word"),
        (classes, "a decoder with classes"),
        (llama(Dimensions { vocabulary: 4099, ..TINY }), "a vocabulary of 4099"),
        (llama(Dimensions { context: 5, ..TINY }), "at most 5"),
        (llama(Dimensions { width: 4104, ..TINY }), "a width of 4104"),
    ] {
        let refused = StepGraph::language(&architecture, &recipe(6, 1, 8, 1), 2).unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
    }
}
