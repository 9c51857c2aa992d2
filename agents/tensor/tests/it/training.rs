//! The training step of language models: libtorch's autograd and the step graph in floats come to the same losses,
//! libtorch's integers and the reference's to the same bits, and calibration by libtorch's floats to the magnitudes
//! that plain ones have.

use std::collections::BTreeMap;
use std::ops::Range;

use tch::kind::Element;
use tensorlink_model::random::{Dimensions, gemma3, gpt2, llama, weights};
use tensorlink_model::{Activation, Architecture, Output};
use tensorlink_num::{StepContext, Tensor};
use tensorlink_program::{CheckedProgram, Engine, Reference};
use tensorlink_tensor::float::{FloatError, FloatRun, FloatTraining, Precision};
use tensorlink_training::calibrate::{CalibrateError, Calibration, LEAST_STEPS, float_data, job_key};
use tensorlink_training::data::text::Tokens;
use tensorlink_training::model::language::Origin;
use tensorlink_training::step::float::Values;
use tensorlink_training::{LanguageModel, LocalPipeline, Model, Schedule, Stage, Table, Training, TrainingSet, init};
use tensorlink_types::TensorRoot;

use crate::device::{device, engines};

const SIZE: Dimensions =
    Dimensions { vocabulary: 23, width: 16, layers: 2, heads: 4, kv_heads: 2, hidden: 24, context: 12 };
const TOKENS: usize = 12;
const SEQUENCES: u32 = 2;
const STEPS: u32 = 30;

/// A fifth of it dropped, and adapters in place of its weights.
const WAYS: [[&str; 2]; 3] = [
    ["", r#", "dropout": 0.2"#],
    [r#", "lora": { "rank": 3, "alpha": 6, "targets": ["output", "up", "down"] }"#, ""],
    [r#", "lora": { "rank": 3, "alpha": 6, "targets": ["output"] }"#, r#", "dropout": 0.2"#],
];

/// A model with made-up weights, about to be trained.
fn begun(architecture: &Architecture) -> (LanguageModel, Training, TrainingSet) {
    begun_by(architecture, ["", ""])
}

/// The same in some way: what is said of where it comes from, and of how it is trained.
fn begun_by(architecture: &Architecture, [from, how]: [&str; 2]) -> (LanguageModel, Training, TrainingSet) {
    let json = format!(
        r#"{{ "name": "tune", "from": {{ "folder": "here", "context": {TOKENS}{from} }},
            "optimizer": {{ "learning_rate": 0.003, "warmup": 1, "weight_decay": 0.1, "clip": 0.5 }},
            "sequences": {SEQUENCES}, "steps": {STEPS}, "operand_bits": 8, "seed": 1{how} }}"#
    );
    let model = LanguageModel::parse("tune.json", json.as_bytes()).unwrap();
    let Origin::From(imported) = model.origin() else { panic!("{:?}", model.origin()) };
    let tokens = Tokens { ids: (0..200).map(|i| i * i % 23).collect(), vocabulary: architecture.vocabulary };
    let data = tokens.split(model.context()).unwrap().training;
    let drawn = weights(architecture, 3).unwrap();
    let training = Training::of_imported(&model, imported, (architecture, &drawn), rows(&data)).unwrap();
    (model, training, data)
}

fn rows(data: &TrainingSet) -> u32 {
    data.features.ty().dims()[0]
}

fn check(architecture: &Architecture) {
    let losses = losses(architecture, ["", ""]);
    assert!(losses[29] < 0.9 * losses[0], "from {} to {}", losses[0], losses[29]);
}

/// Losses of steps that both ways of floats agree on.
fn losses(architecture: &Architecture, way: [&str; 2]) -> Vec<f64> {
    let (_, training, data) = begun_by(architecture, way);
    let floats = float_data(&data);
    let (mut state, (_, recipe)) = (training.state.clone(), training.language().unwrap());
    let mut torch = FloatTraining::new(architecture, recipe, &state, (device(), Precision::F32)).unwrap();
    let mut losses = Vec::new();
    for step in 0..STEPS {
        let context = StepContext { job_key: job_key(1), step };
        let [features, labels] = data.drawn(&context.job_key, step, SEQUENCES);
        let values = Values::compute(&training.graph, &floats, &state, &context);
        let loss = torch.step(&features, &labels, TOKENS, step).unwrap();
        assert!((loss / values.loss() - 1.0).abs() < 1e-4, "step {step}: {loss} against {}", values.loss());
        state = values.next_state();
        losses.push(loss);
    }
    losses
}

#[test]
fn autograd_learns_what_the_step_graph_learns() {
    check(&llama(SIZE));
    check(&gpt2(SIZE));
    // As Qwen 2 is.
    check(&Architecture { attention_bias: true, output: Output::Logits { tied: true }, ..llama(SIZE) });
    // As Qwen 3 is.
    check(&Architecture { query_key_norm: true, ..llama(SIZE) });
    check(&gemma3(SIZE));
    let untied = Output::Logits { tied: false };
    check(&Architecture { activation: Activation::Relu, output: untied, ..gpt2(SIZE) });
    check(&Architecture { activation: Activation::Gelu, gated: true, kv_heads: 2, ..gpt2(SIZE) });
    // Adapters, with nothing dropped.
    for architecture in [llama(SIZE), gpt2(SIZE), gemma3(SIZE)] {
        let losses = losses(&architecture, WAYS[1]);
        assert!(losses[29] < losses[0], "from {} to {}", losses[0], losses[29]);
    }
}

/// State after two steps in integers.
fn trained<E: Engine>(architecture: &Architecture, way: [&str; 2], engine: impl Fn() -> E) -> Vec<Vec<Tensor>> {
    let (_, training, data) = begun_by(architecture, way);
    let calibration = training.calibrate(&data, 2, 1).unwrap();
    let (whole, commit) = (0..training.layers.len(), |_: &Tensor| TensorRoot::default());
    let compiled = training.compile(&calibration, &data, &[whole], commit).unwrap().remove(0);
    let state = init::state(&compiled.program, &training.state).unwrap();
    let (info, constants) = (compiled.info, compiled.constants);
    let program = CheckedProgram::new(compiled.program).unwrap();
    let stages = [Stage { program: &program, info: &info, constants: &constants, state: &state }];
    let mut pipeline = LocalPipeline::new(&stages, job_key(5), engine).unwrap();
    for step in 0..2 {
        pipeline.step(step, Schedule::OneByOne).unwrap();
    }
    pipeline.state().unwrap()
}

#[test]
fn integers_are_those_of_the_reference() {
    let engines = engines();
    let agree = |architecture: &Architecture, way: [&'static str; 2]| {
        let reference = trained(architecture, way, || Reference);
        for engine in &engines {
            assert!(trained(architecture, way, || engine.clone()) == reference, "{architecture:?}, {way:?}");
        }
    };
    for architecture in [
        llama(SIZE),
        gpt2(SIZE),
        gemma3(SIZE),
        Architecture { query_key_norm: true, attention_bias: true, ..llama(SIZE) },
        Architecture { activation: Activation::Relu, ..gpt2(SIZE) },
        // Rows that are reduced in parts.
        gpt2(Dimensions { vocabulary: 4100, hidden: 4098, layers: 1, ..SIZE }),
    ] {
        agree(&architecture, ["", ""]);
    }
    for (architecture, way) in [llama(SIZE), gpt2(SIZE)].iter().flat_map(|a| WAYS.map(|way| (a, way))) {
        agree(architecture, way);
    }
}

/// Calibrated by libtorch.
fn by_libtorch(training: &Training, data: &TrainingSet, steps: u32) -> Result<Calibration, CalibrateError> {
    let start =
        |graph, floats, state| FloatRun::new(graph, &floats, state, (device(), Precision::F32)).map_err(Into::into);
    training.calibrate_by(start, data, steps, 1)
}

/// Both ways of calibration see the same.
fn agree(training: &Training, data: &TrainingSet, steps: u32) {
    let plain = training.calibrate(data, steps, 1).unwrap();
    let torch = by_libtorch(training, data, steps).unwrap();
    for (plain, torch) in [(plain.first_loss, torch.first_loss), (plain.last_loss, torch.last_loss)] {
        assert!((torch / plain - 1.0).abs() < 1e-5, "a loss of {torch} against {plain}");
    }
    assert_eq!(torch.exponents.margins, plain.exponents.margins);
    let (plain, torch) = (plain.exponents.largest, torch.exponents.largest);
    assert!(torch.keys().eq(plain.keys()));
    for (site, plain) in plain {
        // What should be zero is what rounding leaves of it.
        let far = (torch[&site] - plain).abs();
        assert!(far < 1e-3 * plain + 1e-6, "{site}: {} against {plain}", torch[&site]);
    }
}

#[test]
fn calibration_by_libtorch_sees_what_plain_floats_see() {
    for architecture in [
        llama(SIZE),
        gpt2(SIZE),
        gemma3(SIZE),
        Architecture { query_key_norm: true, attention_bias: true, ..llama(SIZE) },
        Architecture { output: Output::Logits { tied: true }, ..llama(SIZE) },
        Architecture { activation: Activation::Relu, ..gpt2(SIZE) },
        Architecture { activation: Activation::Gelu, gated: true, kv_heads: 2, ..gpt2(SIZE) },
    ] {
        let (_, training, data) = begun(&architecture);
        agree(&training, &data, 10);
    }
    for (architecture, way) in [llama(SIZE), gpt2(SIZE)].iter().flat_map(|a| WAYS.map(|way| (a, way))) {
        let (_, training, data) = begun_by(architecture, way);
        agree(&training, &data, 10);
    }
    // Rows that are reduced in parts.
    let (_, training, data) = begun(&gpt2(Dimensions { vocabulary: 4100, hidden: 4098, layers: 1, ..SIZE }));
    agree(&training, &data, LEAST_STEPS);
}

/// A network on a table, with both kinds of activation.
fn network(warmup: &str) -> (Training, TrainingSet) {
    let json = r#"{ "name": "small",
        "layers": [{ "kind": "linear", "out": 6 }, { "kind": "relu" }, { "kind": "linear", "out": 5 }, { "kind": "gelu" }],
        "optimizer": { "learning_rate": 0.05, "momentum": 0.9 },
        "batch_size": 8, "micro_batches": 2, "steps": 20, "operand_bits": 8, "seed": 3 }"#;
    let json = json.replace("0.9 }", &format!("0.9{warmup} }}"));
    let model = Model::parse("small.json", json.as_bytes()).unwrap();
    let row = |i: u32| format!("{},{},{},{}\n", i % 7, i * i % 11, i % 2, ["a", "b", "c"][i as usize % 3]);
    let table = Table::parse((0..60).map(row).collect::<String>().as_bytes()).unwrap();
    let data = table.split(8, 3).unwrap().training;
    let network = model.network(3, 3).unwrap();
    (Training::of_network(&network, &init::gaussian(&network, 3), rows(&data)), data)
}

#[test]
fn networks_are_calibrated_the_same() {
    for warmup in ["", r#", "warmup": 3"#] {
        let (training, data) = network(warmup);
        agree(&training, &data, 20);
    }
}

#[test]
fn calibration_says_what_is_wrong() {
    let (_, mut training, data) = begun(&llama(SIZE));
    for steps in 0..LEAST_STEPS {
        let refused = Err(CalibrateError::TooFewSteps(steps));
        assert_eq!(training.calibrate(&data, steps, 1), refused);
        assert_eq!(by_libtorch(&training, &data, steps), refused);
    }
    let site = "layers.1.mlp.up.weight";
    for value in [f64::NAN, f64::INFINITY, 1e13] {
        training.state.get_mut(site).unwrap()[5] = value;
        let refused = Err(CalibrateError::Diverged { step: 0, site: site.to_owned() });
        assert_eq!(training.calibrate(&data, 3, 1), refused);
        assert_eq!(by_libtorch(&training, &data, 3), refused);
    }
    training.state.remove(site);
    let Err(CalibrateError::Device(why)) = by_libtorch(&training, &data, 3) else { panic!("it has no values") };
    assert!(why.contains(site), "{why}");
}

/// State by name in 32 bits.
type State = BTreeMap<String, Vec<f32>>;

/// Steps in libtorch's floats from a state: losses, and the state after.
fn floated<T: Element>(
    (training, data): (&Training, &TrainingSet),
    state: &BTreeMap<String, Vec<T>>,
    steps: Range<u32>,
    precision: Precision,
) -> (Vec<f64>, State) {
    let data = float_data(data);
    let mut run = FloatRun::new(&training.graph, &data, state, (device(), precision)).unwrap();
    let losses = steps.map(|step| run.train(&StepContext { job_key: job_key(1), step }).unwrap()).collect();
    (losses, run.state().unwrap())
}

/// Largest distance of a tensor between two states, over its update.
fn apart(training: &Training, a: &State, b: &State) -> f64 {
    let of = |(name, before): (&String, &Vec<f64>)| {
        let norm =
            |difference: &dyn Fn(usize) -> f64| (0..before.len()).map(|i| difference(i).powi(2)).sum::<f64>().sqrt();
        let update = norm(&|i| f64::from(a[name][i]) - before[i]);
        if update > 0.0 { norm(&|i| f64::from(a[name][i]) - f64::from(b[name][i])) / update } else { 0.0 }
    };
    training.state.iter().map(of).fold(0.0, f64::max)
}

#[test]
fn a_float_run_goes_on_from_its_state_and_agrees_with_the_plain_one() {
    let tune = begun(&llama(SIZE));
    for (training, data) in [(tune.1, tune.2), network("")] {
        let (losses, whole) = floated((&training, &data), &training.state, 0..8, Precision::F32);
        let (first, half) = floated((&training, &data), &training.state, 0..5, Precision::F32);
        let (second, halves) = floated((&training, &data), &half, 5..8, Precision::F32);
        assert!(halves == whole && [first, second].concat() == losses, "an interval in two is the same bits");

        let (floats, mut state) = (float_data(&data), training.state.clone());
        for (step, loss) in (0..).zip(&losses) {
            let context = StepContext { job_key: job_key(1), step };
            let values = Values::compute(&training.graph, &floats, &state, &context);
            assert!((loss / values.loss() - 1.0).abs() < 1e-4, "step {step}: {loss} against {}", values.loss());
            let next = values.next_state();
            drop(values);
            state = next;
        }
        let plain = state.into_iter().map(|(name, x)| (name, x.into_iter().map(|x| x as f32).collect())).collect();
        let far = apart(&training, &whole, &plain);
        assert!(far < 1e-2, "{far} from the plain run");
    }
}

#[test]
fn bfloat16_is_near_and_not_the_same() {
    for architecture in [llama(SIZE), gpt2(SIZE)] {
        let (_, training, data) = begun(&architecture);
        let (f32, exact) = floated((&training, &data), &training.state, 0..4, Precision::F32);
        let (bf16, near) = floated((&training, &data), &training.state, 0..4, Precision::Bf16);
        for (f32, bf16) in f32.iter().zip(&bf16) {
            assert!((bf16 / f32 - 1.0).abs() < 0.02, "a loss of {bf16} against {f32}");
        }
        let far = apart(&training, &near, &exact);
        assert!(far > 1e-3, "{far}: it is another precision");
    }
}

#[test]
fn a_float_run_says_what_its_state_lacks() {
    let (training, data) = network("");
    let mut state = training.state.clone();
    let site = state.keys().next().unwrap().clone();
    state.get_mut(&site).unwrap().pop();
    let wrong = FloatRun::new(&training.graph, &float_data(&data), &state, (device(), Precision::F32));
    assert!(matches!(wrong, Err(FloatError::Device(_))));
    state.remove(&site);
    let wrong = FloatRun::new(&training.graph, &float_data(&data), &state, (device(), Precision::F32));
    let Err(FloatError::Device(why)) = wrong else { panic!("it has no values") };
    assert!(why.contains(&site), "{why}");
}
