//! Architectures with untrained weights, for tests and benchmarks: the same from the same seed on every machine.
//!
//! The draws are close to normal and scaled so that activations keep their size from layer to layer: projections by
//! `1/√inputs`, those that end on the residual stream by `1/√(2·layers)` more (Radford et al. 2019). Speed, position of
//! maxima and accuracy of trained models are another matter.

use std::collections::BTreeMap;

use super::architecture::{
    Activation, Architecture, Local, Norm, Output, Placement, Pooling, Positions, Rotary, Scaling,
};
use super::family::Family;
use super::parameters::{Matrix, Parameter, Weights, WeightsError, parameters};

/// Sizes of a made-up architecture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dimensions {
    /// Tokens it knows.
    pub vocabulary: u32,
    /// Length of a token's vector, a multiple of `2 · heads`.
    pub width: u32,
    /// Blocks of attention and MLP.
    pub layers: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads; divides `heads`. GPT-2 and BERT have as many as query heads and ignore this.
    pub kv_heads: u32,
    /// Length of the MLP's inner vector.
    pub hidden: u32,
    /// Most tokens of a text.
    pub context: u32,
}

/// A decoder as GPT-2 is: LayerNorm before, learned positions, biases everywhere, tied output.
pub const fn gpt2(size: Dimensions) -> Architecture {
    Architecture {
        family: Family::Gpt2,
        vocabulary: size.vocabulary,
        width: size.width,
        layers: size.layers,
        heads: size.heads,
        kv_heads: size.heads,
        head_width: head_width(size),
        hidden: size.hidden,
        context: size.context,
        norm: Norm::Layer,
        epsilon: 1e-5,
        placement: Placement::Before,
        activation: Activation::GeluTanh,
        gated: false,
        positions: Positions::Learned { first: 0 },
        local: None,
        embedding_scale: None,
        score_scale: None,
        token_types: false,
        attention_bias: true,
        output_bias: true,
        mlp_bias: true,
        query_key_norm: false,
        causal: true,
        output: Output::Logits { tied: true },
        dense: Vec::new(),
        pairs: false,
    }
}

/// A decoder as Llama 2 is: RMSNorm before, rotary positions, a gated MLP, grouped keys, no biases, output weights of
/// its own.
pub fn llama(size: Dimensions) -> Architecture {
    Architecture {
        family: Family::Llama,
        kv_heads: size.kv_heads,
        norm: Norm::Rms,
        activation: Activation::Silu,
        gated: true,
        positions: Positions::Rotary(Rotary { theta: 10_000.0, width: head_width(size), scaling: Scaling::None }),
        attention_bias: false,
        output_bias: false,
        mlp_bias: false,
        output: Output::Logits { tied: false },
        ..gpt2(size)
    }
}

/// A decoder as Gemma 3 is: RMSNorm before and after attention and MLP, and of queries and keys; every other layer
/// sees only the last tokens, a quarter of the context but at least three; scaled embeddings and scores; tied output.
pub fn gemma3(size: Dimensions) -> Architecture {
    let head_width = head_width(size);
    Architecture {
        family: Family::Gemma3,
        epsilon: 1e-6,
        placement: Placement::Around,
        activation: Activation::GeluTanh,
        local: Some(Local {
            window: (size.context / 4).max(3),
            period: 2,
            rotary: Rotary { theta: 100.0, width: head_width, scaling: Scaling::None },
        }),
        embedding_scale: Some(libm::sqrtf(size.width as f32).into()),
        score_scale: Some(f64::from(head_width) + 2.0),
        query_key_norm: true,
        output: Output::Logits { tied: true },
        ..llama(size)
    }
}

/// An encoder as MiniLM is: LayerNorm after, learned positions, token types, biases everywhere, mean pooling.
pub fn bert(size: Dimensions) -> Architecture {
    Architecture {
        family: Family::Bert,
        epsilon: 1e-12,
        placement: Placement::After,
        activation: Activation::Gelu,
        token_types: true,
        causal: false,
        output: Output::Embedding(Pooling::Mean),
        ..gpt2(size)
    }
}

const fn head_width(size: Dimensions) -> u32 {
    match size.width.checked_div(size.heads) {
        Some(width) => width,
        None => 0,
    }
}

/// Weights for an architecture; about a nanosecond each.
///
/// # Errors
/// [`WeightsError::Missing`] if a dimension is zero.
pub fn weights(architecture: &Architecture, seed: u64) -> Result<Weights, WeightsError> {
    completed(architecture, BTreeMap::new(), seed)
}

/// Weights for an architecture: those that are given, and the others as [`weights`] draws them.
///
/// # Errors
/// [`WeightsError`] if a dimension is zero, or what is given has another shape.
pub fn completed(
    architecture: &Architecture,
    given: BTreeMap<String, Matrix>,
    seed: u64,
) -> Result<Weights, WeightsError> {
    let mut matrices = given;
    for (parameter, number) in parameters(architecture).into_iter().zip(0u64..) {
        if matrices.contains_key(&parameter.name) {
            continue;
        }
        let (mean, deviation) = distribution(architecture, &parameter);
        let Parameter { name, rows, columns } = parameter;
        let count = u64::from(rows).saturating_mul(columns.into());
        let values = bells(mix(seed ^ mix(number)), count).map(|bell| mean + deviation * bell).collect();
        let Some(matrix) = Matrix::new(rows, columns, values) else { return Err(WeightsError::Missing(name)) };
        matrices.insert(name, matrix);
    }
    Weights::new(architecture, matrices)
}

/// Mean and standard deviation of a parameter's values.
fn distribution(architecture: &Architecture, parameter: &Parameter) -> (f32, f32) {
    let name = parameter.name.as_str();
    let inverse_root = |n: u32| libm::sqrtf(n.max(1) as f32).recip();
    if name.ends_with(".gain") {
        (1.0, 0.1)
    } else if name.ends_with(".bias") {
        (0.0, 0.1)
    } else if name.starts_with("embedding.") {
        // A tied output would make the logits of a text's own tokens tower over all others.
        let tied = architecture.output == (Output::Logits { tied: true });
        (0.0, if tied { inverse_root(architecture.width) } else { 1.0 })
    } else {
        let ends = name.ends_with(".output.weight") || name.ends_with(".down.weight");
        let share = if ends { inverse_root(architecture.layers.saturating_mul(2)) } else { 1.0 };
        (0.0, inverse_root(parameter.columns) * share)
    }
}

/// Draws of mean 0 and deviation 1, none beyond ±3.5: sums of four uniform ones.
fn bells(seed: u64, count: u64) -> impl Iterator<Item = f32> {
    // Deviation of one uniform draw of 16 bits is 2^16/√12.
    const SCALE: f32 = 1.732_050_8 / 65536.0;
    (0..count).map(move |element| {
        let word = mix(seed.wrapping_add(element.wrapping_mul(STEP)));
        let sum = (word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) + (word >> 48);
        // Exact: 18 bits.
        (sum as f32 - 2.0 * 65535.0) * SCALE
    })
}

/// Draws between −1 and 1, all alike likely; `stream` keeps those of one seed apart.
pub(super) fn uniform(seed: u64, stream: u64, count: u64) -> impl Iterator<Item = f32> {
    let seed = mix(seed ^ mix(stream));
    // SAFETY of the cast: the upper 24 bits; exact.
    let draw = |word: u64| (word >> 40) as f32 / 8_388_608.0 - 1.0;
    (0..count).map(move |element| draw(mix(seed.wrapping_add(element.wrapping_mul(STEP)))))
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64 (Steele et al. 2014).
const fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Dimensions =
        Dimensions { vocabulary: 500, width: 64, layers: 2, heads: 4, kv_heads: 2, hidden: 96, context: 32 };

    #[test]
    fn draws_are_centred_and_of_the_size_they_should_have() {
        let weights = weights(&llama(SIZE), 1).unwrap();
        for (name, mean, deviation) in
            [("embedding.tokens", 0.0, 1.0), ("head.weight", 0.0, 0.125), ("layers.1.mlp.down.weight", 0.0, 0.051)]
        {
            let values = weights.get(name).unwrap().values();
            let count = values.len() as f32;
            let measured = values.iter().sum::<f32>() / count;
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / count;
            assert!((measured - mean).abs() < 0.02 * deviation, "{name}: {measured}");
            assert!((variance.sqrt() / deviation - 1.0).abs() < 0.03, "{name}: {}", variance.sqrt());
        }
    }

    #[test]
    fn seeds_and_parameters_differ_and_runs_agree() {
        for architecture in [gpt2(SIZE), llama(SIZE), bert(SIZE), gemma3(SIZE)] {
            let first = weights(&architecture, 7).unwrap();
            assert_eq!(first, weights(&architecture, 7).unwrap());
            assert_ne!(first, weights(&architecture, 8).unwrap());
            let (up, down) = ("layers.0.mlp.up.weight", "layers.1.mlp.up.weight");
            assert_ne!(first.get(up).unwrap(), first.get(down).unwrap());
        }
    }

    #[test]
    fn an_architecture_of_nothing_has_no_weights() {
        assert!(weights(&gpt2(Dimensions { layers: 1, hidden: 0, ..SIZE }), 1).is_err());
    }
}
