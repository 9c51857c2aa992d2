//! Dimensions and variants of encoder and decoder transformers.

use serde::{Deserialize, Serialize};

use crate::family::Family;

/// Normalisation of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Norm {
    /// LayerNorm (Ba et al. 2016): centred, with gain and bias.
    Layer,
    /// RMSNorm (Zhang and Sennrich 2019): gain only.
    Rms,
}

/// Where a block normalises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Before attention and MLP, and once after the last layer.
    Before,
    /// After each residual addition, and once after the embedding.
    After,
    /// Before attention and MLP, on what they give before it is added, and once after the last layer.
    Around,
}

impl Placement {
    /// Whether attention and MLP take normalised rows, and the output is made of such.
    pub const fn before(self) -> bool {
        matches!(self, Self::Before | Self::Around)
    }
}

/// Nonlinearity of the MLP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `x·Φ(x)`.
    Gelu,
    /// `x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))`.
    GeluTanh,
    /// `x·σ(x)`.
    Silu,
    /// `max(x, 0)`.
    Relu,
}

/// How tokens know their place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Positions {
    /// A learned vector for each place; that of token t is row `first + t`.
    Learned {
        /// Row of the first token (2 in RoBERTa).
        first: u32,
    },
    /// Queries and keys rotated (Su et al. 2021), halves convention.
    Rotary(Rotary),
}

/// Rotary embedding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rotary {
    /// Base of the frequencies.
    pub theta: f64,
    /// Rotated elements of a head, even, from its first on.
    pub width: u32,
    /// Stretching of the context.
    pub scaling: Scaling,
}

/// Layers whose tokens see only those shortly before them, among layers whose tokens see all.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Local {
    /// Tokens that a token sees, itself included.
    pub window: u32,
    /// Every so many-th layer sees all: layers `period − 1`, `2·period − 1` …
    pub period: u32,
    /// Positions in the layers that do not.
    pub rotary: Rotary,
}

/// How frequencies are stretched for contexts longer than those a model was first trained on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// Not at all.
    None,
    /// All by one factor.
    Linear {
        /// The factor.
        factor: f64,
    },
    /// Long wavelengths by a factor, short ones not, a ramp between (Llama 3.1).
    Llama3 {
        /// Factor of the long wavelengths.
        factor: f64,
        /// Wavelengths above `original_context / low` are stretched whole.
        low: f64,
        /// Wavelengths below `original_context / high` are left.
        high: f64,
        /// Context of the first training.
        original_context: u32,
    },
    /// Late pairs by a factor, early ones not, a ramp between; and all rotations lengthened (YaRN, Peng et al. 2023).
    Yarn {
        /// Factor of the late pairs.
        factor: f64,
        /// Pairs that turn more often within `original_context` are left.
        fast: f64,
        /// Pairs that turn less often are stretched whole.
        slow: f64,
        /// Context of the first training.
        original_context: u32,
        /// What cosines and sines are multiplied by.
        amplitude: f64,
    },
}

impl Rotary {
    /// Angle per token of each rotated pair, in radians; `width / 2` of them.
    pub fn frequencies(&self) -> Vec<f64> {
        let pairs = self.width / 2;
        let plain = |pair| libm::pow(self.theta, -2.0 * f64::from(pair) / f64::from(self.width));
        (0..pairs).map(|pair| self.stretched(pair, plain(pair))).collect()
    }

    /// What cosines and sines are multiplied by; 1 but for YaRN.
    pub const fn amplitude(&self) -> f64 {
        match self.scaling {
            Scaling::Yarn { amplitude, .. } => amplitude,
            Scaling::None | Scaling::Linear { .. } | Scaling::Llama3 { .. } => 1.0,
        }
    }

    fn stretched(&self, pair: u32, frequency: f64) -> f64 {
        match self.scaling {
            Scaling::None => frequency,
            Scaling::Linear { factor } => frequency / factor,
            Scaling::Llama3 { factor, low, high, original_context } => {
                let turns = f64::from(original_context) * frequency / std::f64::consts::TAU;
                // 1 keeps the frequency, 0 divides it by the factor.
                let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                frequency * (kept + (1.0 - kept) / factor)
            }
            Scaling::Yarn { factor, fast, slow, original_context, .. } => {
                // The pair, in fractions, that turns so often within the first context.
                let turning = |turns: f64| {
                    let ratio = f64::from(original_context) / (turns * std::f64::consts::TAU);
                    f64::from(self.width) * libm::log(ratio) / (2.0 * libm::log(self.theta))
                };
                let low = libm::floor(turning(fast)).max(0.0);
                let high = libm::ceil(turning(slow)).min(f64::from(self.width) - 1.0);
                // As in Hugging Face's own: a ramp has some length.
                let high = if high > low { high } else { low + 0.001 };
                let stretched = ((f64::from(pair) - low) / (high - low)).clamp(0.0, 1.0);
                frequency * (1.0 - stretched + stretched / factor)
            }
        }
    }
}

/// How a model makes one vector of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// Mean over the tokens.
    Mean,
    /// The first token's.
    First,
    /// The last token's.
    Last,
    /// The largest of each element.
    Max,
    /// Mean over the tokens, the first of weight 1, the second of weight 2, and so on.
    WeightedMean,
    /// Sum over the tokens, divided by the root of their number.
    RootMean,
}

/// A layer that a text's vector goes through after pooling.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Dense {
    /// Elements that it gives.
    pub outputs: u32,
    /// Whether it adds a bias.
    pub bias: bool,
    /// What it makes of the sums.
    pub curve: Curve,
}

/// What a dense layer makes of its sums.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Curve {
    /// Nothing.
    Identity,
    /// `(1 − e^−2x) / (1 + e^−2x)`.
    Tanh,
    /// `1 / (1 + e^−x)`.
    Sigmoid,
    /// What an MLP makes of its gate.
    Gate(Activation),
}

/// What a model gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// A unit vector for each text.
    Embedding(Pooling),
    /// For each token, a logit for each word of the vocabulary.
    Logits {
        /// Whether the output weights are those of the token embedding.
        tied: bool,
    },
    /// For each text, a logit for each of so many classes: of the first token's vector, by way of a dense layer and a
    /// hyperbolic tangent (BERT's pooler).
    Classes(u32),
}

/// A transformer: everything about it but its weights. Valid when it came from a parser of this crate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Architecture {
    /// Conventions of its files.
    pub family: Family,
    /// Tokens it knows.
    pub vocabulary: u32,
    /// Length of a token's vector.
    pub width: u32,
    /// Blocks of attention and MLP.
    pub layers: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads; divides `heads`. Older records call them `groups`.
    #[serde(alias = "groups")]
    pub kv_heads: u32,
    /// Length of a head's vector.
    pub head_width: u32,
    /// Length of the MLP's inner vector.
    pub hidden: u32,
    /// Most tokens of a text.
    pub context: u32,
    /// Normalisation.
    pub norm: Norm,
    /// Its ε.
    pub epsilon: f64,
    /// Where it stands.
    pub placement: Placement,
    /// Nonlinearity of the MLP.
    pub activation: Activation,
    /// Whether the MLP multiplies the activated gate with a second projection (SwiGLU).
    pub gated: bool,
    /// Positions; those of the layers that see all, where others do not.
    pub positions: Positions,
    /// Layers that do not see all, if there are any.
    #[serde(default)]
    pub local: Option<Local>,
    /// What tokens' vectors are multiplied by, if by anything.
    #[serde(default)]
    pub embedding_scale: Option<f64>,
    /// The number by whose root scores are divided, where it is not the width of a head.
    #[serde(default)]
    pub score_scale: Option<f64>,
    /// Whether a learned vector for the text's number in a pair is added; texts are number 0.
    pub token_types: bool,
    /// Whether the projections to query, key and value have biases.
    pub attention_bias: bool,
    /// Whether attention's output projection has a bias.
    pub output_bias: bool,
    /// Whether the MLP's projections have biases.
    pub mlp_bias: bool,
    /// Whether queries and keys are normalised head by head (RMSNorm) before they are rotated.
    pub query_key_norm: bool,
    /// Whether a token sees only itself and what came before it.
    pub causal: bool,
    /// What comes out.
    pub output: Output,
    /// Layers that a text's vector goes through before it gets the length of 1.
    #[serde(default)]
    pub dense: Vec<Dense>,
    /// Whether texts come in pairs. Tokens of the second text are numbered from `vocabulary` on, and another learned
    /// vector is added to theirs.
    #[serde(default)]
    pub pairs: bool,
}

impl Architecture {
    /// Elements of a token's queries: all heads.
    pub const fn query_width(&self) -> u32 {
        self.heads.saturating_mul(self.head_width)
    }

    /// The layers that a text's vector goes through, by the names of their parameters: dense ones, or BERT's pooler and
    /// what gives its classes.
    pub fn text_layers(&self) -> Vec<(String, Dense)> {
        if let Output::Classes(outputs) = self.output {
            let pooler = Dense { outputs: self.width, bias: true, curve: Curve::Tanh };
            let head = Dense { outputs, bias: true, curve: Curve::Identity };
            return vec![("pooler".to_owned(), pooler), ("head".to_owned(), head)];
        }
        let named = |(number, layer): (usize, &Dense)| (format!("dense.{number}"), *layer);
        self.dense.iter().enumerate().map(named).collect()
    }

    /// Numbers that tokens may have: more than the vocabulary has where texts come in pairs.
    pub const fn token_numbers(&self) -> u32 {
        self.vocabulary.saturating_mul(if self.pairs { 2 } else { 1 })
    }

    /// Length of a text's vector.
    pub fn vector_width(&self) -> u32 {
        self.dense.last().map_or(self.width, |last| last.outputs)
    }

    /// What scores are divided by.
    pub fn score_divisor(&self) -> f64 {
        libm::sqrt(self.score_scale.unwrap_or_else(|| self.head_width.into()))
    }

    /// What a layer's tokens do not see beyond, if it is one that does not see all.
    pub fn local(&self, layer: u32) -> Option<&Local> {
        let sees_all = |period: u32| layer.saturating_add(1).checked_rem(period) == Some(0);
        self.local.as_ref().filter(|local| !sees_all(local.period))
    }

    /// Rotary positions in a layer, if positions are rotary.
    pub fn rotary(&self, layer: u32) -> Option<&Rotary> {
        match (self.local(layer), &self.positions) {
            (Some(local), _) => Some(&local.rotary),
            (None, Positions::Rotary(rotary)) => Some(rotary),
            (None, Positions::Learned { .. }) => None,
        }
    }

    /// Elements of a token's keys, and of its values.
    pub const fn key_width(&self) -> u32 {
        self.kv_heads.saturating_mul(self.head_width)
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::{Dimensions, gemma3, llama};
    use super::*;

    #[test]
    fn llama3_leaves_short_wavelengths_and_stretches_long_ones() {
        let frequencies = |scaling| Rotary { theta: 500_000.0, width: 128, scaling }.frequencies();
        let before = frequencies(Scaling::None);
        let after = frequencies(Scaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original_context: 8192 });
        assert_eq!((before[0], after[0]), (1.0, 1.0));
        assert!((after[63] - before[63] / 8.0).abs() < 1e-15);
        assert!(before.iter().zip(&after).all(|(b, a)| a <= b && *a >= b / 8.0));
        let linear = frequencies(Scaling::Linear { factor: 4.0 });
        assert!(before.iter().zip(&linear).all(|(b, l)| (b / 4.0 - l).abs() < 1e-15));
    }

    #[test]
    fn every_so_many_th_layer_sees_all() {
        let size = Dimensions { vocabulary: 8, width: 8, layers: 7, heads: 2, kv_heads: 1, hidden: 8, context: 8 };
        let a = gemma3(size);
        let seen: Vec<Option<u32>> = (0..7).map(|layer| a.local(layer).map(|local| local.window)).collect();
        let some = Some(3);
        assert_eq!(seen, [some, None, some, None, some, None, some]);
        assert_eq!([0, 1].map(|layer| a.rotary(layer).map(|rotary| rotary.theta)), [Some(100.0), Some(10_000.0)]);
        let llama = llama(size);
        assert_eq!((llama.local(0), llama.rotary(0).map(|rotary| rotary.theta)), (None, Some(10_000.0)));
        assert!((llama.score_divisor() - 2.0).abs() < 1e-12);
        let absurd = Architecture { local: a.local.map(|local| Local { period: 0, ..local }), ..llama };
        assert!(absurd.local(0).is_some());
    }

    #[test]
    fn yarn_leaves_early_pairs_and_stretches_late_ones() {
        // As Qwen 2.5 has it; the numbers are those of Hugging Face's formula.
        let scaling = Scaling::Yarn { factor: 4.0, fast: 32.0, slow: 1.0, original_context: 32768, amplitude: 1.14 };
        let rotary = Rotary { theta: 1e6, width: 128, scaling };
        assert!((rotary.amplitude() - 1.14).abs() < 1e-15);
        let frequencies = rotary.frequencies();
        for (pair, expected) in [
            (0, 1.0),
            (23, 0.006_978_305_848_598_663),
            (30, 0.001_064_360_981_247_001_7),
            (35, 0.000_246_258_406_908_938_9),
            (63, 3.102_344_401_879_299e-7),
        ] {
            let relative: f64 = frequencies[pair] / expected - 1.0;
            assert!(relative.abs() < 1e-12, "{pair}: {}", frequencies[pair]);
        }
    }
}
