//! Transformers in integers against the same in floats.

use tensorlink_model::random::{self, Dimensions};
use tensorlink_model::{
    Activation, Architecture, Curve, Dense, Family, Output, Pooling, Positions, Quantized, Rotary, Scaling, Setting,
    StageRunner, Weights, tokens,
};
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_tensor::calibrate;
use tensorlink_tensor::float::{FloatModel, Precision};
use tensorlink_types::TensorRoot;

use crate::device::{device, engine, engines};

const SIZE: Dimensions =
    Dimensions { vocabulary: 200, width: 96, layers: 3, heads: 4, kv_heads: 2, hidden: 160, context: 32 };

fn architectures() -> [Architecture; 18] {
    let dense = |outputs, bias, curve| Dense { outputs, bias, curve };
    let pooled = |pooling| Architecture { output: Output::Embedding(pooling), ..random::bert(SIZE) };
    let scaling = Scaling::Yarn { factor: 4.0, fast: 4.0, slow: 0.5, original_context: 32, amplitude: 1.14 };
    let yarn = Positions::Rotary(Rotary { theta: 10_000.0, width: SIZE.width / SIZE.heads, scaling });
    [
        // An MLP too wide for one reduction.
        random::llama(Dimensions { hidden: 4200, layers: 1, ..SIZE }),
        random::gpt2(SIZE),
        random::llama(SIZE),
        random::bert(SIZE),
        random::gemma3(SIZE),
        Architecture {
            query_key_norm: true,
            attention_bias: true,
            family: Family::Qwen3,
            positions: yarn,
            ..random::llama(SIZE)
        },
        pooled(Pooling::First),
        pooled(Pooling::Last),
        pooled(Pooling::Max),
        pooled(Pooling::WeightedMean),
        Architecture { output: Output::Embedding(Pooling::WeightedMean), ..random::gpt2(SIZE) },
        Architecture { output: Output::Embedding(Pooling::Last), ..random::llama(SIZE) },
        Architecture { dense: vec![dense(80, true, Curve::Tanh)], ..pooled(Pooling::First) },
        Architecture {
            dense: vec![dense(120, true, Curve::Sigmoid), dense(64, true, Curve::Identity)],
            ..pooled(Pooling::Mean)
        },
        Architecture { dense: vec![dense(64, true, Curve::Gate(Activation::Gelu))], ..pooled(Pooling::RootMean) },
        Architecture { dense: vec![dense(64, true, Curve::Gate(Activation::Relu))], ..pooled(Pooling::WeightedMean) },
        Architecture { output: Output::Classes(5), ..random::bert(SIZE) },
        Architecture { output: Output::Classes(5), pairs: true, ..random::bert(SIZE) },
    ]
}

/// Texts of 5 to 28 tokens.
fn texts(seed: u32) -> Vec<Vec<u32>> {
    let word = |i: u32| (i.wrapping_mul(2_654_435_761) ^ seed.wrapping_mul(40_503)).wrapping_mul(2_246_822_519) % 200;
    (0..8u32).map(|text| (0..5 + 3 * text + seed % 3).map(|i| word(text * 97 + i)).collect()).collect()
}

fn quantized(architecture: &Architecture, weights: &Weights, float: &FloatModel) -> Quantized {
    let known = texts(1);
    let seen = calibrate(float, known.iter().map(Vec::as_slice)).unwrap();
    Quantized::new(architecture.clone(), Setting::default(), weights, &seen).unwrap()
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn integers_give_what_floats_give() {
    for architecture in architectures() {
        let weights = random::weights(&architecture, 7).unwrap();
        let float = FloatModel::new(&architecture, &weights, device(), Precision::F32).unwrap();
        let model = quantized(&architecture, &weights, &float);
        let (plan, constants) = model.stage(0..architecture.layers, |_| TensorRoot::default()).unwrap();
        let runner = StageRunner::new(engine(), plan, &constants).unwrap();
        let row = match architecture.output {
            Output::Embedding(_) => architecture.vector_width(),
            Output::Logits { .. } => SIZE.vocabulary,
            Output::Classes(classes) => classes,
        } as usize;
        let (mut worst, mut mean, mut rows) = (1.0f64, 0.0, 0.0);
        for mut text in texts(2) {
            if architecture.pairs {
                text.iter_mut().skip(4).for_each(|id| *id += SIZE.vocabulary);
            }
            let due = float.forward(&text, None).unwrap().values().unwrap();
            let due: Vec<f64> = due.into_iter().map(f64::from).collect();
            let got = runner.run(&tokens(&text).unwrap()).unwrap().to_f64();
            assert_eq!(got.len(), due.len());
            for (got, due) in got.chunks(row).zip(due.chunks(row)) {
                let cosine = cosine(got, due);
                (worst, mean, rows) = (worst.min(cosine), mean + cosine, rows + 1.0);
            }
        }
        mean /= rows;
        let least = if matches!(architecture.output, Output::Embedding(_)) { 0.999 } else { 0.997 };
        assert!(mean > least && worst > 0.99, "{:?}: cosine {mean} on average, {worst} at worst", architecture.family);
    }
}

#[test]
fn the_engine_gives_the_bits_of_the_reference() {
    for architecture in architectures() {
        let weights = random::weights(&architecture, 7).unwrap();
        let float = FloatModel::new(&architecture, &weights, device(), Precision::F32).unwrap();
        let model = quantized(&architecture, &weights, &float);
        let (plan, constants) = model.stage(0..architecture.layers, |_| TensorRoot::default()).unwrap();
        let input = tokens(&texts(3)[4]).unwrap();
        let reference = StageRunner::new(Reference, plan.clone(), &constants).unwrap().trace(&input).unwrap();
        let program = plan.program(input.ty().dims()[0]).unwrap();
        for engine in engines() {
            let engine = StageRunner::new(engine, plan.clone(), &constants).unwrap();
            let traced: Vec<Tensor> = engine.trace(&input).unwrap();
            for ((due, got), name) in reference.iter().zip(&traced).zip(&program.names) {
                assert_eq!(due, got, "{name}");
            }
            assert_eq!(engine.run(&input).unwrap(), *reference.last().unwrap());
        }
    }
}
