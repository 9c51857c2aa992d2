//! Model files of language models, which are trained on text: a decoder or an encoder made from scratch, or one that
//! was trained elsewhere.
//!
//! ```json
//! { "name": "king-james",
//!   "decoder": { "width": 128, "layers": 4, "heads": 4, "kv_heads": 2, "hidden": 344, "context": 128 },
//!   "optimizer": { "learning_rate": 0.003, "warmup": 50, "weight_decay": 0.1, "clip": 1.0 },
//!   "sequences": 16, "steps": 800, "operand_bits": 8, "seed": 7 }
//! ```
//! A decoder learns what comes next in a text; an `encoder`, `{ "width": 64, "layers": 2, "heads": 4, "context": 96 }`,
//! in the shape of BERT, learns the class of each text of a table. Instead of either,
//! `"from": { "folder": "smollm", "context": 128 }` trains a model on that was trained elsewhere. With
//! `"lora": { "rank": 8, "alpha": 16, "targets": ["query", "value"] }` beside the folder, its weights stay as they are,
//! and adapters of low rank are trained in place of a decoder's.
//!
//! `"dropout": 0.1` drops a share of embeddings, attention's probabilities and blocks' outputs; without it nothing
//! is dropped.
//!
//! | `shape` | norm | positions | MLP | keys and values | biases | output weights |
//! |---|---|---|---|---|---|---|
//! | `llama`, unless said | RMSNorm | rotary | gated SiLU | shared by heads: `kv_heads` of them, as many as heads unless said | none | its own, or `"tied": true` |
//! | `gpt2` | LayerNorm | learned | GELU | as many as heads | everywhere | the embedding, or `"tied": false` |

use serde::{Deserialize, Serialize};

use super::parse::{syntax, unmarked};
use super::schedule::{MAX_SCHEDULE, rates};
use super::{Decoder, Encoder, Imported, MAX_MICRO_BATCHES, MAX_MODEL_FILE, ModelError};
use crate::step::language::{AdamW, Recipe};

/// Decays of Adam's moments; the second so that it is written exactly in twelve binary places.
const BETAS: [f64; 2] = [0.9, 1.0 - 41.0 / 4096.0];

/// The file as written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decoder: Option<Decoder>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoder: Option<Encoder>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Imported>,
    optimizer: Optimizer,
    sequences: u32,
    steps: u32,
    operand_bits: u8,
    #[serde(default)]
    dropout: f64,
    seed: u64,
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
    /// Norm that all gradients together are clipped to, in `(0, 1000]`.
    pub clip: f64,
}

/// Where a language model comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Made from scratch, on characters.
    Decoder(Decoder),
    /// The same, for classes of texts.
    Encoder(Encoder),
    /// Trained elsewhere, on tokens.
    From(Imported),
}

/// A checked model file of a language model.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LanguageModel {
    name: String,
    #[serde(flatten)]
    origin: Origin,
    optimizer: Optimizer,
    sequences: u32,
    steps: u32,
    operand_bits: u8,
    dropout: f64,
    seed: u64,
}

impl LanguageModel {
    /// Whether a model file describes a language model.
    pub fn is_meant(json: &[u8]) -> bool {
        let has =
            |file: serde_json::Value| ["decoder", "encoder", "from"].iter().any(|field| file.get(field).is_some());
        serde_json::from_slice(unmarked(json)).is_ok_and(has)
    }

    /// Parses and checks a model file; `file` is its name, for messages.
    ///
    /// # Errors
    /// A [`ModelError`] that names the file and the field, and what to write instead.
    pub fn parse(file: &str, json: &[u8]) -> Result<Self, ModelError> {
        if json.len() > MAX_MODEL_FILE {
            return Err(ModelError::TooLarge { file: file.into(), bytes: json.len() });
        }
        let raw: Raw = serde_json::from_slice(unmarked(json)).map_err(|error| syntax(file, "", &error))?;
        let Raw { name, decoder, encoder, from, optimizer, sequences, steps, operand_bits, dropout, seed } = raw;
        let origin = match (decoder, encoder, from) {
            (Some(decoder), None, None) => Origin::Decoder(decoder),
            (None, Some(encoder), None) => Origin::Encoder(encoder),
            (None, None, Some(imported)) => Origin::From(imported),
            _ => {
                let message = "it needs one of `decoder`, `encoder` and `from`".to_owned();
                return Err(ModelError::Syntax { file: file.into(), message });
            }
        };
        let problem = match &origin {
            Origin::Decoder(decoder) => decoder.problem(),
            Origin::Encoder(encoder) => encoder.problem(),
            Origin::From(imported) => imported.problem(),
        };
        if let Some((field, value, allowed)) = problem {
            let (file, field, value) = (file.into(), field.into(), value.to_string());
            return Err(ModelError::OutOfRange { file, field, value, allowed });
        }
        let o = &optimizer;
        let checks: [(bool, &str, String, &'static str); 9] = [
            ((1..=64).contains(&name.len()), "name", format!("`{name}`"), "1 to 64 bytes"),
            (o.learning_rate > 0.0 && o.learning_rate <= 1.0, "learning_rate", o.learning_rate.to_string(), "(0, 1]"),
            (o.warmup < steps, "warmup", o.warmup.to_string(), "fewer than steps"),
            ((0.0..=1.0).contains(&o.weight_decay), "weight_decay", o.weight_decay.to_string(), "[0, 1]"),
            (o.clip > 0.0 && o.clip <= 1000.0, "clip", o.clip.to_string(), "(0, 1000]"),
            ((1..=MAX_MICRO_BATCHES).contains(&sequences), "sequences", sequences.to_string(), "1 to 64"),
            (matches!(operand_bits, 8 | 16), "operand_bits", operand_bits.to_string(), "8 or 16"),
            ((0.0..=0.9).contains(&dropout), "dropout", dropout.to_string(), "[0, 0.9]"),
            (steps <= MAX_SCHEDULE, "steps", steps.to_string(), "1 to 1000000"),
        ];
        for (holds, field, value, allowed) in checks {
            if !holds {
                return Err(ModelError::OutOfRange { file: file.into(), field: field.into(), value, allowed });
            }
        }
        Ok(Self { name, origin, optimizer, sequences, steps, operand_bits, dropout, seed })
    }

    /// Name for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Steps of training.
    pub const fn steps(&self) -> u32 {
        self.steps
    }

    /// Seed of initial weights.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// What it is made from.
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Tokens of a sequence.
    pub const fn context(&self) -> u32 {
        match &self.origin {
            Origin::Decoder(decoder) => decoder.context,
            Origin::Encoder(encoder) => encoder.context,
            Origin::From(imported) => imported.context,
        }
    }

    /// How it is trained, with so many sequences a step.
    pub fn recipe(&self, sequences: u32) -> Recipe {
        let [beta1, beta2] = BETAS;
        let Optimizer { learning_rate, warmup, weight_decay, clip } = self.optimizer;
        let rates = rates(learning_rate, warmup, self.steps);
        let optimizer = AdamW { rates, beta1, beta2, weight_decay, clip };
        let (operand_bits, dropout) = (self.operand_bits, self.dropout);
        let (tokens, padding, adapters) = (self.context(), None, None);
        Recipe { tokens, padding, sequences, operand_bits, dropout, optimizer, adapters }
    }

    /// Sequences of a step.
    pub const fn sequences(&self) -> u32 {
        self.sequences
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_model::{Architecture, Output};

    use super::*;

    const FILE: &str = r#"{ "name": "small",
        "decoder": { "width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "hidden": 64, "context": 16 },
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
    }

    #[test]
    fn a_shape_says_what_a_decoder_has() {
        let of = |rest: &str| {
            let json = FILE.replace(r#""kv_heads": 2"#, rest);
            let model = LanguageModel::parse("m.json", json.as_bytes()).unwrap();
            let Origin::Decoder(decoder) = model.origin() else { panic!("{:?}", model.origin()) };
            decoder.architecture(50)
        };
        let (llama, gpt2) = (of(r#""kv_heads": 2"#), of(r#""shape": "gpt2""#));
        assert_eq!((llama.kv_heads, llama.output), (2, Output::Logits { tied: false }));
        assert_eq!((gpt2.kv_heads, gpt2.output), (4, Output::Logits { tied: true }));
        assert!(gpt2.mlp_bias && !gpt2.gated && !llama.mlp_bias && llama.gated);
        let cut = of(r#""shape": "gpt2", "tied": false"#);
        assert_eq!(cut, Architecture { output: Output::Logits { tied: false }, ..gpt2 });
        assert_eq!(of(r#""shape": "llama""#).kv_heads, 4);
        assert_eq!(of(r#""groups": 2"#), llama, "older files");
        let record = serde_json::to_string(&llama).unwrap().replace("kv_heads", "groups");
        assert_eq!(serde_json::from_str::<Architecture>(&record).unwrap(), llama, "older records");
    }

    #[test]
    fn a_model_is_made_or_imported() {
        let decoder = &FILE[FILE.find(r#""decoder""#).unwrap()..FILE.find(r#""optimizer""#).unwrap()];
        let of = |origin: &str| LanguageModel::parse("m.json", FILE.replace(decoder, origin).as_bytes());
        let imported = of(r#""from": { "folder": "smollm", "context": 64 }, "#).unwrap();
        let folder = Imported { folder: "smollm".into(), context: 64, untie: false, lora: None };
        assert_eq!((imported.context(), imported.origin()), (64, &Origin::From(folder)));
        let both = format!(r#"{decoder} "from": {{ "folder": "smollm", "context": 64 }}, "#);
        for origin in ["", &both] {
            let refused = of(origin).unwrap_err().to_string();
            assert!(refused.contains("one of `decoder`, `encoder` and `from`"), "{refused}");
        }
        let refused = of(r#""from": { "folder": "smollm", "context": 1 }, "#).unwrap_err().to_string();
        assert!(refused.contains("context is 1; choose 2 to 4096"), "{refused}");
    }

    #[test]
    fn an_encoder_has_the_shape_of_bert() {
        let decoder = &FILE[FILE.find(r#""decoder""#).unwrap()..FILE.find(r#""optimizer""#).unwrap()];
        let of = |sizes: &str| {
            let json = FILE.replace(decoder, &format!(r#""encoder": {{ {sizes} "context": 96 }}, "#));
            LanguageModel::parse("m.json", json.as_bytes())
        };
        let model = of(r#""width": 24, "layers": 2, "heads": 4,"#).unwrap();
        let Origin::Encoder(encoder) = model.origin() else { panic!("{:?}", model.origin()) };
        let architecture = encoder.architecture(50, 3);
        assert_eq!((model.context(), architecture.hidden, architecture.output), (96, 96, Output::Classes(3)));
        assert!(!architecture.causal && architecture.mlp_bias && architecture.token_types);
        for (sizes, said) in [
            (r#""width": 24, "layers": 2, "heads": 5,"#, "heads is 5; choose a divisor of width"),
            (r#""width": 24, "layers": 0, "heads": 4,"#, "layers is 0; choose 1 to 128"),
            (r#""width": 24, "layers": 2, "heads": 4, "kv_heads": 2,"#, "unknown field `kv_heads`"),
            (r#""width": 24, "layers": 2,"#, "missing field `heads`"),
        ] {
            let refused = of(sizes).unwrap_err().to_string();
            assert!(refused.contains(said), "{refused}");
        }
    }

    #[test]
    fn absurd_numbers_are_refused() {
        for (from, to, field) in [
            (r#""width": 32"#, r#""width": 0"#, "width"),
            (r#""width": 32"#, r#""width": 36"#, "heads"),
            (r#""heads": 4"#, r#""heads": 0"#, "heads"),
            (r#""kv_heads": 2"#, r#""kv_heads": 3"#, "kv_heads"),
            (r#""layers": 2"#, r#""layers": 129"#, "layers"),
            (r#""hidden": 64"#, r#""hidden": 65537"#, "hidden"),
            (r#""context": 16"#, r#""context": 1"#, "context"),
            ("0.003", "0.0", "learning_rate"),
            ("0.003", "1e300", "learning_rate"),
            (r#""warmup": 10"#, r#""warmup": 110"#, "warmup"),
            (r#""weight_decay": 0.1"#, r#""weight_decay": -0.1"#, "weight_decay"),
            (r#""clip": 1.0"#, r#""clip": 0.0"#, "clip"),
            (r#""sequences": 4"#, r#""sequences": 65"#, "sequences"),
            (r#""operand_bits": 8"#, r#""operand_bits": 4"#, "operand_bits"),
            (r#""operand_bits": 8"#, r#""operand_bits": 8, "dropout": 0.95"#, "dropout"),
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
        let shared = FILE.replace(r#""kv_heads": 2"#, r#""kv_heads": 2, "shape": "gpt2""#);
        let refused = LanguageModel::parse("m.json", shared.as_bytes()).unwrap_err().to_string();
        assert!(refused.contains("kv_heads is 2; choose nothing"), "{refused}");
        let unknown = FILE.replace(r#""seed": 7"#, r#""seed": 7, "sead": 8"#);
        assert!(matches!(LanguageModel::parse("m.json", unknown.as_bytes()), Err(ModelError::Syntax { .. })));
    }
}
