//! Model files of language models: a decoder that is trained from scratch on text.
//!
//! ```json
//! { "name": "king-james",
//!   "decoder": { "width": 128, "layers": 4, "heads": 4, "groups": 2, "hidden": 344, "context": 128 },
//!   "optimizer": { "learning_rate": 0.003, "warmup": 50, "weight_decay": 0.1, "clip": 1.0 },
//!   "sequences": 16, "steps": 800, "operand_bits": 8, "seed": 7 }
//! ```
//! A decoder is shaped as Llama is: RMSNorm before, rotary positions, a gated MLP, `groups` of shared keys and values.

use serde::{Deserialize, Serialize};

use super::parse::syntax;
use super::{MAX_MICRO_BATCHES, MAX_MODEL_FILE, MAX_WIDTH, ModelError};
use crate::step::language::{AdamW, Recipe};
use crate::transformer::Architecture;
use crate::transformer::random::{Dimensions, llama};

/// Most blocks of a decoder that is trained.
pub const MAX_BLOCKS: u32 = 128;
/// Decays of Adam's moments; the second so that it is written exactly in twelve binary places.
const BETAS: [f64; 2] = [0.9, 1.0 - 41.0 / 4096.0];
/// Share of the learning rate that is left at the end.
const LAST_RATE: f64 = 0.1;

/// The file as written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    decoder: Decoder,
    optimizer: Optimizer,
    sequences: u32,
    steps: u32,
    operand_bits: u8,
    seed: u64,
}

/// Sizes of a decoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decoder {
    /// Length of a token's vector, a multiple of twice the heads.
    pub width: u32,
    /// Blocks of attention and MLP.
    pub layers: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads; divides `heads`.
    pub groups: u32,
    /// Length of the MLP's inner vector.
    pub hidden: u32,
    /// Tokens of a sequence.
    pub context: u32,
}

/// AdamW with a warm-up and a cosine.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Optimizer {
    /// Largest learning rate, in `(0, 1]`.
    pub learning_rate: f64,
    /// Steps until it is reached; from there it falls to a tenth along a cosine.
    pub warmup: u32,
    /// Decay of matrices, in `[0, 1]`.
    pub weight_decay: f64,
    /// Norm that each layer's gradients are clipped to, in `(0, 1000]`.
    pub clip: f64,
}

/// A checked model file of a language model.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LanguageModel(Raw);

impl LanguageModel {
    /// Whether a model file describes a language model.
    pub fn is_meant(json: &[u8]) -> bool {
        serde_json::from_slice::<serde_json::Value>(json).is_ok_and(|file| file.get("decoder").is_some())
    }

    /// Parses and checks a model file; `file` is its name, for messages.
    ///
    /// # Errors
    /// A [`ModelError`] that names the file and the field, and what to write instead.
    pub fn parse(file: &str, json: &[u8]) -> Result<Self, ModelError> {
        if json.len() > MAX_MODEL_FILE {
            return Err(ModelError::TooLarge { file: file.into(), bytes: json.len() });
        }
        let raw: Raw = serde_json::from_slice(json).map_err(|error| syntax(file, "", &error))?;
        let Raw { decoder: d, optimizer: o, .. } = &raw;
        let whole_heads = d.heads > 0 && d.width.checked_rem(d.heads.saturating_mul(2)) == Some(0);
        let whole_groups = d.groups > 0 && d.heads.checked_rem(d.groups) == Some(0);
        let checks: [(bool, &str, String, &'static str); 14] = [
            ((1..=64).contains(&raw.name.len()), "name", format!("`{}`", raw.name), "1 to 64 bytes"),
            ((1..=MAX_WIDTH).contains(&d.width), "width", d.width.to_string(), "1 to 4096"),
            ((1..=MAX_BLOCKS).contains(&d.layers), "layers", d.layers.to_string(), "1 to 128"),
            (whole_heads, "heads", d.heads.to_string(), "a number whose double divides width"),
            (whole_groups, "groups", d.groups.to_string(), "a divisor of heads"),
            ((1..=MAX_WIDTH).contains(&d.hidden), "hidden", d.hidden.to_string(), "1 to 4096"),
            ((2..=MAX_WIDTH).contains(&d.context), "context", d.context.to_string(), "2 to 4096"),
            (o.learning_rate > 0.0 && o.learning_rate <= 1.0, "learning_rate", o.learning_rate.to_string(), "(0, 1]"),
            (o.warmup < raw.steps, "warmup", o.warmup.to_string(), "fewer than steps"),
            ((0.0..=1.0).contains(&o.weight_decay), "weight_decay", o.weight_decay.to_string(), "[0, 1]"),
            (o.clip > 0.0 && o.clip <= 1000.0, "clip", o.clip.to_string(), "(0, 1000]"),
            ((1..=MAX_MICRO_BATCHES).contains(&raw.sequences), "sequences", raw.sequences.to_string(), "1 to 64"),
            (matches!(raw.operand_bits, 8 | 16), "operand_bits", raw.operand_bits.to_string(), "8 or 16"),
            (raw.steps <= MAX_SCHEDULE, "steps", raw.steps.to_string(), "1 to 1000000"),
        ];
        for (holds, field, value, allowed) in checks {
            if !holds {
                return Err(ModelError::OutOfRange { file: file.into(), field: field.into(), value, allowed });
            }
        }
        Ok(Self(raw))
    }

    /// Name for people.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Steps of training.
    pub const fn steps(&self) -> u32 {
        self.0.steps
    }

    /// Seed of initial weights.
    pub const fn seed(&self) -> u64 {
        self.0.seed
    }

    /// Tokens of a sequence.
    pub const fn context(&self) -> u32 {
        self.0.decoder.context
    }

    /// The decoder for a vocabulary of so many tokens.
    pub const fn architecture(&self, vocabulary: u32) -> Architecture {
        let Decoder { width, layers, heads, groups, hidden, context } = self.0.decoder;
        llama(Dimensions { vocabulary, width, layers, heads, groups, hidden, context })
    }

    /// How it is trained, with so many sequences a step.
    pub fn recipe(&self, sequences: u32) -> Recipe {
        let Raw { decoder, optimizer, operand_bits, .. } = &self.0;
        let [beta1, beta2] = BETAS;
        let rates = (0..self.0.steps).map(|step| self.rate(step)).collect();
        let optimizer = AdamW { rates, beta1, beta2, weight_decay: optimizer.weight_decay, clip: optimizer.clip };
        Recipe { tokens: decoder.context, sequences, operand_bits: *operand_bits, optimizer }
    }

    /// Sequences of a step.
    pub const fn sequences(&self) -> u32 {
        self.0.sequences
    }

    fn rate(&self, step: u32) -> f64 {
        let Optimizer { learning_rate, warmup, .. } = self.0.optimizer;
        if step < warmup {
            return learning_rate * f64::from(step.saturating_add(1)) / f64::from(warmup);
        }
        let all = f64::from(self.0.steps.saturating_sub(warmup).max(1));
        let done = f64::from(step.saturating_sub(warmup)) / all;
        learning_rate * (LAST_RATE + (1.0 - LAST_RATE) * 0.5 * (1.0 + libm::cos(std::f64::consts::PI * done)))
    }
}

/// Most steps: the schedule is a constant of the program.
const MAX_SCHEDULE: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{ "name": "small",
        "decoder": { "width": 32, "layers": 2, "heads": 4, "groups": 2, "hidden": 64, "context": 16 },
        "optimizer": { "learning_rate": 0.003, "warmup": 10, "weight_decay": 0.1, "clip": 1.0 },
        "sequences": 4, "steps": 110, "operand_bits": 8, "seed": 7 }"#;

    #[test]
    fn rates_rise_and_fall() {
        assert!(LanguageModel::is_meant(FILE.as_bytes()) && !LanguageModel::is_meant(b"{}"));
        let model = LanguageModel::parse("m.json", FILE.as_bytes()).unwrap();
        let rates = model.recipe(4).optimizer.rates;
        assert_eq!((rates.len(), rates[9], rates[10]), (110, 0.003, 0.003));
        assert!((rates[0] - 0.0003).abs() < 1e-12);
        assert!(rates[10..].windows(2).all(|pair| pair[0] > pair[1]) && rates[109] < 0.000_31);
        assert_eq!(model.architecture(63).vocabulary, 63);
    }

    #[test]
    fn absurd_numbers_are_refused() {
        for (from, to, field) in [
            (r#""width": 32"#, r#""width": 0"#, "width"),
            (r#""width": 32"#, r#""width": 36"#, "heads"),
            (r#""heads": 4"#, r#""heads": 0"#, "heads"),
            (r#""groups": 2"#, r#""groups": 3"#, "groups"),
            (r#""layers": 2"#, r#""layers": 129"#, "layers"),
            (r#""hidden": 64"#, r#""hidden": 4097"#, "hidden"),
            (r#""context": 16"#, r#""context": 1"#, "context"),
            ("0.003", "0.0", "learning_rate"),
            ("0.003", "1e300", "learning_rate"),
            (r#""warmup": 10"#, r#""warmup": 110"#, "warmup"),
            (r#""weight_decay": 0.1"#, r#""weight_decay": -0.1"#, "weight_decay"),
            (r#""clip": 1.0"#, r#""clip": 0.0"#, "clip"),
            (r#""sequences": 4"#, r#""sequences": 65"#, "sequences"),
            (r#""operand_bits": 8"#, r#""operand_bits": 4"#, "operand_bits"),
            (r#""steps": 110"#, r#""steps": 0"#, "warmup"),
            (r#""name": "small""#, r#""name": """#, "name"),
        ] {
            let json = FILE.replace(from, to);
            assert_ne!(json, FILE, "{from}");
            match LanguageModel::parse("m.json", json.as_bytes()) {
                Err(ModelError::OutOfRange { field: blamed, .. }) => assert_eq!(blamed, field, "{to}"),
                other => panic!("{to}: {other:?}"),
            }
        }
        let unknown = FILE.replace(r#""seed": 7"#, r#""seed": 7, "sead": 8"#);
        assert!(matches!(LanguageModel::parse("m.json", unknown.as_bytes()), Err(ModelError::Syntax { .. })));
    }
}
