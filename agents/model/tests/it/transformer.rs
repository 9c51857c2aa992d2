//! Transformers: programs of every length, cut anywhere, give the same bits.

use std::ops::Range;

use tensorlink_model::memory::stage_bytes;
use tensorlink_model::random::{self, Dimensions};
use tensorlink_model::{
    Activation, Architecture, Curve, Dense, Family, Magnitudes, Output, PlanError, Pooling, Quantized, Setting,
    StageRunner, parameters, tokens,
};
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_types::TensorRoot;

pub(crate) const SIZE: Dimensions =
    Dimensions { vocabulary: 50, width: 24, layers: 3, heads: 4, kv_heads: 2, hidden: 40, context: 16 };
pub(crate) const TEXT: [u32; 9] = [3, 49, 0, 7, 7, 12, 31, 8, 44];

fn architectures() -> [Architecture; 16] {
    let pooled = |pooling| Architecture { output: Output::Embedding(pooling), ..random::bert(SIZE) };
    let dense = |outputs, bias, curve| Dense { outputs, bias, curve };
    [
        random::gpt2(SIZE),
        random::llama(SIZE),
        random::bert(SIZE),
        random::gemma3(SIZE),
        Architecture { query_key_norm: true, family: Family::Qwen3, ..random::llama(SIZE) },
        pooled(Pooling::First),
        pooled(Pooling::Last),
        pooled(Pooling::Max),
        pooled(Pooling::WeightedMean),
        Architecture { output: Output::Embedding(Pooling::WeightedMean), ..random::gpt2(SIZE) },
        Architecture { output: Output::Embedding(Pooling::Last), ..random::llama(SIZE) },
        Architecture {
            dense: vec![dense(40, true, Curve::Tanh), dense(9, false, Curve::Identity)],
            ..random::bert(SIZE)
        },
        Architecture { dense: vec![dense(30, false, Curve::Gate(Activation::Gelu))], ..pooled(Pooling::RootMean) },
        Architecture { dense: vec![dense(24, true, Curve::Gate(Activation::Relu))], ..pooled(Pooling::WeightedMean) },
        Architecture { output: Output::Classes(3), ..random::bert(SIZE) },
        Architecture { output: Output::Classes(1), pairs: true, ..random::bert(SIZE) },
    ]
}

/// Every site a program may ask for, at one magnitude.
fn magnitudes(architecture: &Architecture) -> Magnitudes {
    magnitudes_of(architecture, 6.0)
}

/// The same, and scores at one of their own.
fn magnitudes_of(architecture: &Architecture, scores: f32) -> Magnitudes {
    let mut sites: Vec<String> = ["embedding", "embedding.norm", "final.norm", "logits"].map(str::to_owned).to_vec();
    for layer in 0..architecture.layers {
        for part in [
            "query",
            "query.projected",
            "key",
            "key.projected",
            "value",
            "rotated_query",
            "rotated_key",
            "mixed",
            "output",
            "sum",
            "norm",
            "output_norm",
            "scores",
        ] {
            sites.push(format!("layers.{layer}.attention.{part}"));
            sites.push(format!("layers.{layer}.attention.{part}.unbiased"));
        }
        for part in ["up", "gate", "activated", "product", "down", "sum", "norm", "output_norm"] {
            sites.push(format!("layers.{layer}.mlp.{part}"));
            sites.push(format!("layers.{layer}.mlp.{part}.unbiased"));
        }
    }
    for layer in ["dense.0", "dense.1", "pooler", "head"] {
        sites.extend(["", ".unbiased", ".activated"].map(|part| format!("{layer}{part}")));
    }
    let mut magnitudes = Magnitudes::default();
    for site in &sites {
        magnitudes.see(site, if site.ends_with(".scores") { scores } else { 6.0 });
    }
    magnitudes
}

pub(crate) fn quantized(architecture: Architecture) -> Quantized {
    quantized_in(architecture, Setting::default())
}

fn quantized_in(architecture: Architecture, setting: Setting) -> Quantized {
    let weights = random::weights(&architecture, 5).unwrap();
    let seen = magnitudes(&architecture);
    Quantized::new(architecture, setting, &weights, &seen).unwrap()
}

/// Runs a text through stages cut after these layers.
pub(crate) fn run(model: &Quantized, cuts: &[u32], text: &[u32]) -> Tensor {
    let ends = cuts.iter().copied().chain([model.architecture().layers]);
    let (mut x, mut start) = (tokens(text).unwrap(), 0);
    for end in ends {
        let (plan, constants) = model.stage(start..end, |_| TensorRoot::default()).unwrap();
        x = StageRunner::new(Reference, plan, &constants).unwrap().run(&x).unwrap();
        start = end;
    }
    x
}

/// Of what a stage holds, the weights and their scales; the rest are tables.
fn weights_of(model: &Quantized, layers: Range<u32>) -> u64 {
    let names = parameters(model.architecture());
    let weight = |name: &str| {
        let rest = names.iter().filter_map(|parameter| name.strip_prefix(parameter.name.as_str()));
        rest.into_iter().any(|rest| rest.is_empty() || rest == ".scale" || rest.starts_with(".part"))
    };
    let (plan, _) = model.stage(layers, |_| TensorRoot::default()).unwrap();
    plan.constants().iter().filter(|slot| weight(&slot.name)).map(|slot| slot.ty.byte_len()).sum()
}

#[test]
fn a_stage_holds_as_much_as_was_foretold_in_every_setting() {
    for architecture in architectures() {
        for setting in Setting::ALL {
            let model = quantized_in(architecture.clone(), setting);
            for layers in [0..3, 0..1, 1..2, 2..3] {
                let (held, foretold) =
                    (weights_of(&model, layers.clone()), stage_bytes(&architecture, setting, &layers));
                let family = architecture.family;
                assert!(held.abs_diff(foretold) * 50 <= held, "{family:?}, {setting}, {layers:?}: {held} {foretold}");
            }
        }
    }
}

#[test]
fn every_length_has_a_program_and_no_other_has() {
    for architecture in architectures() {
        let model = quantized(architecture);
        let (plan, constants) = model.stage(0..3, |_| TensorRoot::default()).unwrap();
        assert_eq!(plan.constants().len(), constants.len());
        for tokens in 1..=16 {
            let program = plan.program(tokens).unwrap();
            assert_eq!(program.constants, plan.constants());
        }
        for tokens in [0, 17] {
            assert_eq!(plan.program(tokens), Err(PlanError::Tokens { tokens, context: 16 }));
        }
        for layers in [0..0, 1..4, 3..3] {
            assert!(matches!(model.stage(layers, |_| TensorRoot::default()), Err(PlanError::Layers { .. })));
        }
    }
}

#[test]
fn cuts_do_not_change_bits() {
    for architecture in architectures() {
        let model = quantized(architecture);
        let whole = run(&model, &[], &TEXT);
        assert_eq!(run(&model, &[1], &TEXT), whole);
        assert_eq!(run(&model, &[1, 2], &TEXT), whole);
    }
}

/// What makes a cache of keys and values exact: later tokens do not change earlier ones.
#[test]
fn a_longer_text_begins_with_the_bits_of_a_shorter_one() {
    for architecture in [random::gpt2(SIZE), random::llama(SIZE), random::gemma3(SIZE)] {
        let model = quantized(architecture);
        let whole = run(&model, &[], &TEXT);
        for length in 1..TEXT.len() {
            let part = run(&model, &[], &TEXT[..length]).to_bytes();
            assert_eq!(whole.to_bytes()[..part.len()], part, "{length} tokens");
        }
    }
}

#[test]
fn what_lies_beyond_the_window_changes_nothing() {
    // One layer, whose tokens see four; scores from the smallest to the largest.
    let architecture = Architecture { layers: 1, ..random::gemma3(SIZE) };
    let weights = random::weights(&architecture, 5).unwrap();
    let row = SIZE.vocabulary as usize;
    for largest in [1e-12, 1e-3, 6.0, 1e5] {
        let seen = magnitudes_of(&architecture, largest);
        let model = Quantized::new(architecture.clone(), Setting::default(), &weights, &seen).unwrap();
        let rows = |first: u32| {
            let logits = run(&model, &[], &[&[first], &TEXT[1..]].concat()).mantissas().to_vec();
            logits.chunks(row).map(<[i64]>::to_vec).collect::<Vec<_>>()
        };
        let (one, other) = (rows(3), rows(20));
        for token in 0..TEXT.len() {
            assert_eq!(one[token] == other[token], token >= 4, "{token}, scores of {largest}");
        }
    }
}

#[test]
fn integers_follow_their_text() {
    // Other words, other results; and results that are no constants.
    for architecture in architectures() {
        let model = quantized(architecture);
        let (a, b) = (run(&model, &[], &TEXT), run(&model, &[], &[3, 49, 0, 7, 7, 12, 31, 8, 45]));
        assert_ne!(a, b);
        let values = a.to_f64();
        assert!(values.iter().any(|x| x.abs() > 0.05), "{values:?}");
    }
}

#[test]
fn weights_have_a_name_and_a_place() {
    for architecture in architectures() {
        let weights = random::weights(&architecture, 5).unwrap();
        let count: u64 = parameters(&architecture).iter().map(|p| u64::from(p.rows) * u64::from(p.columns)).sum();
        assert_eq!(weights.count(), count);
    }
}

/// Rows beyond the longest reduction are computed in parts.
#[test]
fn long_rows_are_split() {
    let architecture = random::llama(Dimensions { hidden: 4100, layers: 1, context: 4, ..SIZE });
    let model = quantized(architecture);
    let (plan, _) = model.stage(0..1, |_| TensorRoot::default()).unwrap();
    let names: Vec<_> = plan.constants().iter().map(|slot| (slot.name.as_str(), slot.ty.dims())).collect();
    assert!(names.contains(&("layers.0.mlp.down.weight.part0", &[24, 4096])), "{names:?}");
    assert!(names.contains(&("layers.0.mlp.down.weight.part1", &[24, 4])), "{names:?}");
    plan.program(3).unwrap();
}

/// A token of a second text is the same word with another vector added.
#[test]
fn tokens_of_a_pair_know_their_text() {
    let model = quantized(Architecture { output: Output::Classes(1), pairs: true, ..random::bert(SIZE) });
    let second = |from: usize| {
        let numbered = TEXT.iter().enumerate().map(|(place, id)| if place < from { *id } else { id + SIZE.vocabulary });
        run(&model, &[], &numbered.collect::<Vec<_>>())
    };
    let whole = TEXT.len();
    assert_eq!(second(whole), run(&model, &[], &TEXT));
    let all: Vec<_> = (0..=whole).map(|from| second(from).mantissas().to_vec()).collect();
    for (from, score) in all.iter().enumerate() {
        assert!(all.iter().skip(from + 1).all(|other| other != score), "{from}: {all:?}");
    }
}
