//! The training step of language models: libtorch's autograd and the step graph in floats come to the same losses, libtorch's
//! integers and the reference's to the same bits, and calibration by libtorch's floats to the magnitudes that plain ones have.

use tensorlink_graph::calibrate::{CalibrateError, Calibration, LEAST_STEPS, float_data, job_key};
use tensorlink_graph::data::text::Tokens;
use tensorlink_graph::model::language::Origin;
use tensorlink_graph::step::float::Values;
use tensorlink_graph::transformer::random::{Dimensions, gpt2, llama, weights};
use tensorlink_graph::transformer::{Activation, Architecture, Output};
use tensorlink_graph::{
    CheckedProgram, Engine, LanguageModel, LocalPipeline, Model, Reference, Schedule, Stage, Table, Training,
    TrainingSet, init,
};
use tensorlink_num::{StepContext, Tensor, philox};
use tensorlink_tensor::float::{FloatTraining, FloatTrial, Precision};
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_types::TensorRoot;

const SIZE: Dimensions =
    Dimensions { vocabulary: 23, width: 16, layers: 2, heads: 4, groups: 2, hidden: 24, context: 12 };
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
    let (model, training, data) = begun(architecture);
    let (features, labels) = (data.features.mantissas().to_vec(), data.labels.mantissas().to_vec());
    let floats = float_data(&data);
    let (mut state, recipe) = (training.state.clone(), model.recipe(SEQUENCES));
    let mut torch = FloatTraining::new(architecture, &recipe, &state, (Device::Cpu, Precision::F32)).unwrap();
    let mut losses = Vec::new();
    for step in 0..STEPS {
        let context = StepContext { job_key: job_key(1), step };
        let drawn = |s| philox::draw_below(&context.job_key, s, step, rows(&data).into()) as usize;
        let batch = |ids: &[i64]| -> Vec<i64> {
            (0..SEQUENCES).map(drawn).flat_map(|row| ids[row * TOKENS..(row + 1) * TOKENS].to_vec()).collect()
        };
        let values = Values::compute(&training.graph, &floats, &state, &context);
        let loss = torch.step(&batch(&features), &batch(&labels), TOKENS, step).unwrap();
        assert!((loss / values.loss() - 1.0).abs() < 1e-4, "step {step}: {loss} against {}", values.loss());
        state = values.next_state();
        losses.push(loss);
    }
    assert!(losses[29] < 0.9 * losses[0], "from {} to {}", losses[0], losses[29]);
}

#[test]
fn autograd_learns_what_the_step_graph_learns() {
    check(&llama(SIZE));
    check(&gpt2(SIZE));
    // As Qwen 2 is.
    check(&Architecture { attention_bias: true, output: Output::Logits { tied: true }, ..llama(SIZE) });
    // As Qwen 3 is.
    check(&Architecture { query_key_norm: true, ..llama(SIZE) });
    let untied = Output::Logits { tied: false };
    check(&Architecture { activation: Activation::Relu, output: untied, ..gpt2(SIZE) });
    check(&Architecture { activation: Activation::Gelu, gated: true, groups: 2, ..gpt2(SIZE) });
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
    let torch = TorchEngine::new(Device::Cpu).unwrap();
    for architecture in [
        llama(SIZE),
        gpt2(SIZE),
        Architecture { query_key_norm: true, attention_bias: true, ..llama(SIZE) },
        Architecture { activation: Activation::Relu, ..gpt2(SIZE) },
        // Rows that are reduced in parts.
        gpt2(Dimensions { vocabulary: 4100, hidden: 4098, layers: 1, ..SIZE }),
    ] {
        let exact = trained(&architecture, ["", ""], || torch.clone());
        let reference = trained(&architecture, ["", ""], || Reference);
        assert!(exact == reference, "{architecture:?}");
    }
    for (architecture, way) in [llama(SIZE), gpt2(SIZE)].iter().flat_map(|a| WAYS.map(|way| (a, way))) {
        let (exact, reference) =
            (trained(architecture, way, || torch.clone()), trained(architecture, way, || Reference));
        assert!(exact == reference, "{architecture:?}, {way:?}");
    }
}

/// Calibrated by libtorch.
fn by_libtorch(training: &Training, data: &TrainingSet, steps: u32) -> Result<Calibration, CalibrateError> {
    let start = |graph, floats, state| FloatTrial::new(graph, &floats, state, Device::Cpu);
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
        Architecture { query_key_norm: true, attention_bias: true, ..llama(SIZE) },
        Architecture { output: Output::Logits { tied: true }, ..llama(SIZE) },
        Architecture { activation: Activation::Relu, ..gpt2(SIZE) },
        Architecture { activation: Activation::Gelu, gated: true, groups: 2, ..gpt2(SIZE) },
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
fn network() -> (Training, TrainingSet) {
    let json = r#"{ "name": "small",
        "layers": [{ "kind": "linear", "out": 6 }, { "kind": "relu" }, { "kind": "linear", "out": 5 }, { "kind": "gelu" }],
        "optimizer": { "learning_rate": 0.05, "momentum": 0.9 },
        "batch_size": 8, "micro_batches": 2, "steps": 20, "operand_bits": 8, "seed": 3 }"#;
    let model = Model::parse("small.json", json.as_bytes()).unwrap();
    let row = |i: u32| format!("{},{},{},{}\n", i % 7, i * i % 11, i % 2, ["a", "b", "c"][i as usize % 3]);
    let table = Table::parse((0..60).map(row).collect::<String>().as_bytes()).unwrap();
    let data = table.split(8, 3).unwrap().training;
    let network = model.network(3, 3).unwrap();
    (Training::of_network(&network, &init::gaussian(&network, 3), rows(&data)), data)
}

#[test]
fn networks_are_calibrated_the_same() {
    let (training, data) = network();
    agree(&training, &data, 20);
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
