//! The float model against loops over doubles that share nothing with it but names.

use std::collections::BTreeMap;

use tensorlink_model::random::{self, Dimensions};
use tensorlink_model::{
    Activation, Architecture, Curve, Dense, Family, Output, Pooling, Positions, Rotary, Scaling, Weights,
};
use tensorlink_tensor::Device;
use tensorlink_tensor::float::{FloatError, FloatModel, FloatOutput, Precision, Products, Seen};

use crate::device::device;
use crate::reference::Reference;

const SIZE: Dimensions =
    Dimensions { vocabulary: 61, width: 24, layers: 2, heads: 4, kv_heads: 2, hidden: 40, context: 16 };
const IDS: [u32; 9] = [3, 60, 0, 17, 17, 42, 5, 29, 8];

fn rotary(width: u32, scaling: Scaling) -> Positions {
    Positions::Rotary(Rotary { theta: 10_000.0, width, scaling })
}

/// Decoders and encoders in which every variant appears.
fn architectures() -> Vec<Architecture> {
    let llama = random::llama(SIZE);
    let bert = random::bert(SIZE);
    let dense = |outputs, bias, curve| Dense { outputs, bias, curve };
    let stretched = Scaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original_context: 16 };
    let yarn = Scaling::Yarn { factor: 4.0, fast: 2.0, slow: 0.5, original_context: 64, amplitude: 1.14 };
    let qwen3 = Architecture {
        family: Family::Qwen3,
        head_width: 10,
        positions: rotary(10, Scaling::None),
        query_key_norm: true,
        output: Output::Logits { tied: true },
        ..llama.clone()
    };
    vec![
        random::gpt2(SIZE),
        random::gemma3(SIZE),
        Architecture { local: None, embedding_scale: None, ..random::gemma3(SIZE) },
        Architecture { positions: rotary(6, stretched), ..llama.clone() },
        Architecture { family: Family::Mistral, kv_heads: 1, activation: Activation::Gelu, ..llama.clone() },
        Architecture { family: Family::Qwen2, attention_bias: true, positions: rotary(6, yarn), ..llama.clone() },
        Architecture { attention_bias: true, mlp_bias: true, ..qwen3.clone() },
        // Half of each head rotated.
        Architecture { positions: rotary(4, Scaling::Linear { factor: 2.0 }), head_width: 8, ..qwen3 },
        Architecture { gated: false, activation: Activation::Relu, ..llama },
        bert.clone(),
        Architecture { output: Output::Classes(3), ..bert.clone() },
        Architecture { dense: vec![dense(30, true, Curve::Tanh), dense(24, false, Curve::Sigmoid)], ..bert.clone() },
        Architecture {
            output: Output::Embedding(Pooling::RootMean),
            dense: vec![dense(24, true, Curve::Gate(Activation::Silu))],
            ..bert.clone()
        },
        Architecture { output: Output::Embedding(Pooling::Last), ..bert.clone() },
        Architecture { output: Output::Embedding(Pooling::Max), ..bert.clone() },
        Architecture { output: Output::Embedding(Pooling::Last), ..random::llama(SIZE) },
        Architecture { output: Output::Embedding(Pooling::WeightedMean), ..random::gpt2(SIZE) },
        Architecture {
            family: Family::Roberta,
            positions: Positions::Learned { first: 2 },
            output: Output::Embedding(Pooling::First),
            ..bert
        },
    ]
}

fn weights(architecture: &Architecture) -> Weights {
    random::weights(architecture, 5).unwrap()
}

fn model(architecture: &Architecture, precision: Precision) -> FloatModel {
    FloatModel::new(architecture, &weights(architecture), device(), precision).unwrap()
}

fn values(output: Result<FloatOutput, FloatError>) -> Vec<f32> {
    output.unwrap().values().unwrap()
}

/// Largest difference, relative to values of the size of 1.
fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f32::max)
}

#[test]
fn outputs_and_sites_are_those_of_plain_loops() {
    for architecture in architectures() {
        let weights = weights(&architecture);
        let mut reference = Reference::new(&architecture, &weights);
        let due: Vec<f32> = reference.run(&IDS).into_iter().map(|x| x as f32).collect();
        let model = model(&architecture, Precision::F32);
        let fast = model.forward(&IDS, None).unwrap();
        let size: Vec<i64> = match architecture.output {
            Output::Embedding(_) => vec![24],
            Output::Logits { .. } => vec![9, 61],
            Output::Classes(classes) => vec![1, classes.into()],
        };
        assert_eq!(fast.tensor().size(), size);
        assert!(apart(&fast.values().unwrap(), &due) < 1e-4, "{architecture:?}");

        let mut sites = BTreeMap::new();
        let mut observe = |site: &str, seen: Seen<'_>| {
            let Seen::Largest(largest) = seen else { return };
            assert!(sites.insert(site.to_owned(), f64::from(largest)).is_none(), "{site} twice");
        };
        let observed = values(model.forward(&IDS, Some(&mut observe)));
        assert!(apart(&observed, &due) < 1e-4, "{architecture:?}");
        let names = |sites: &BTreeMap<String, f64>| sites.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&sites), names(&reference.sites), "{architecture:?}");
        for (site, largest) in &sites {
            let due = reference.sites[site];
            assert!((largest - due).abs() < 1e-4 * due.max(1.0), "{site}: {largest} for {due} in {architecture:?}");
        }
    }
}

#[test]
fn texts_of_one_token_and_of_the_whole_context() {
    for architecture in architectures() {
        let weights = weights(&architecture);
        let model = model(&architecture, Precision::F32);
        for ids in [vec![7], vec![9; 16]] {
            let due: Vec<f32> =
                Reference::new(&architecture, &weights).run(&ids).into_iter().map(|x| x as f32).collect();
            assert!(apart(&values(model.forward(&ids, None)), &due) < 1e-4, "{architecture:?}");
        }
    }
}

#[test]
fn cached_parts_of_a_text_give_what_the_whole_gives() {
    let goes_on = |a: &Architecture| a.causal && matches!(a.output, Output::Logits { .. });
    for architecture in architectures().into_iter().filter(goes_on) {
        let model = model(&architecture, Precision::F32);
        let whole = values(model.forward(&IDS, None));
        let logits = |token: usize| &whole[token * 61..][..61];
        let mut cache = model.cache(9).unwrap();
        // The first of nothing, a part that follows another, then one by one.
        assert!(apart(&values(model.prefill(&IDS[..4], &mut cache)), logits(3)) < 1e-5);
        assert!(apart(&values(model.prefill(&IDS[4..7], &mut cache)), logits(6)) < 1e-5, "{architecture:?}");
        assert!(apart(&values(model.decode(IDS[7], &mut cache)), logits(7)) < 1e-5);
        assert!(apart(&values(model.decode(IDS[8], &mut cache)), logits(8)) < 1e-5);
        assert_eq!((cache.len(), cache.capacity()), (9, 9));
        cache.truncate(5);
        assert!(apart(&values(model.decode(IDS[5], &mut cache)), logits(5)) < 1e-5);
    }
}

#[test]
fn half_the_bits_give_nearly_the_same() {
    for architecture in architectures() {
        let (a, b) = (model(&architecture, Precision::F32), model(&architecture, Precision::Bf16));
        let (a, b) = (values(a.forward(&IDS, None)), values(b.forward(&IDS, None)));
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let cosine = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
        assert!(cosine > 0.999, "{cosine} in {architecture:?}");
        assert_ne!(a, b);
    }
}

#[test]
fn both_products_give_the_same() {
    for architecture in architectures() {
        let architecture = Architecture { context: 40, ..architecture };
        let ids: Vec<u32> = (0..40).map(|t| t * 7 % 61).collect();
        let first = model(&architecture, Precision::F32);
        let due = values(first.forward(&ids, None));
        let second = first.with_products(Products::OneDnn);
        assert!(apart(&values(second.forward(&ids, None)), &due) < 1e-5, "{architecture:?}");
        let mut seen = 0;
        let observed = values(second.forward(&ids, Some(&mut |_, _| seen += 1)));
        assert!(seen > 0 && apart(&observed, &due) < 1e-5, "{architecture:?}");
    }
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    let (llama, bert) = (random::llama(SIZE), random::bert(SIZE));
    let model = model(&llama, Precision::F32);
    for (ids, tokens) in [(vec![], 0), (vec![1; 17], 17)] {
        let error = model.forward(&ids, None).unwrap_err();
        assert!(matches!(error, FloatError::Length { tokens: t, most: 16 } if t == tokens), "{error}");
    }
    let error = model.forward(&[1, 61], None).unwrap_err();
    assert!(matches!(error, FloatError::Token { token: 61, vocabulary: 61 }), "{error}");
    assert!(matches!(model.cache(17).unwrap_err(), FloatError::Length { tokens: 17, most: 16 }));
    let mut cache = model.cache(3).unwrap();
    model.prefill(&[1, 2], &mut cache).unwrap();
    let error = model.prefill(&[1, 2], &mut cache).unwrap_err();
    assert!(matches!(error, FloatError::Length { tokens: 4, most: 3 }), "{error}");
    assert_eq!(cache.len(), 2);

    let error = FloatModel::new(&bert, &weights(&llama), device(), Precision::F32).unwrap_err();
    assert!(matches!(error, FloatError::Weights(_)), "{error}");
    let wider = Architecture { hidden: 41, ..llama.clone() };
    let error = FloatModel::new(&wider, &weights(&llama), device(), Precision::F32).unwrap_err();
    assert!(error.to_string().contains("[40, 24]"), "{error}");
    assert!(FloatModel::new(&llama, &weights(&llama), Device::Cuda(99), Precision::F32).is_err());

    let encoder = FloatModel::new(&bert, &weights(&bert), device(), Precision::F32).unwrap();
    assert!(matches!(encoder.cache(4).unwrap_err(), FloatError::NotADecoder));
    let half = FloatModel::new(&llama, &weights(&llama), device(), Precision::Bf16).unwrap();
    assert!(matches!(half.decode(1, &mut cache).unwrap_err(), FloatError::ForeignCache));
}

#[test]
fn pairs_of_texts_are_numbered_beyond_the_vocabulary() {
    let architecture = Architecture { output: Output::Classes(1), pairs: true, ..random::bert(SIZE) };
    let weights = weights(&architecture);
    let ids: Vec<u32> = (0..).zip(IDS).map(|(place, id)| if place < 5 { id } else { id + SIZE.vocabulary }).collect();
    let due = Reference::new(&architecture, &weights).run(&ids);
    let model = model(&architecture, Precision::F32);
    let score = |ids: &[u32]| values(model.forward(ids, None));
    assert!((f64::from(score(&ids)[0]) - due[0]).abs() < 1e-4);
    assert_ne!(score(&ids), score(&IDS));
    let beyond = model.forward(&[2 * SIZE.vocabulary], None).unwrap_err();
    assert!(matches!(beyond, FloatError::Token { token: 122, vocabulary: 122 }), "{beyond}");
}
