//! What native mode is measured on: small models of three kinds, drawn by several seeds.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tensorlink_native::{State, Task};
use tensorlink_training::model::language::Origin;
use tensorlink_training::{LanguageModel, Model};
use tensorlink_user::Draft;

/// A table and two shapes of decoders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Layers with ReLU and GELU, SGD with momentum.
    Table,
    /// RMSNorm, rotated heads, gated MLP; AdamW.
    Llama,
    /// LayerNorm, biases, learned positions, GELU; AdamW.
    Gpt2,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Table, Self::Llama, Self::Gpt2];

    /// The task of a seed, and the state it begins in.
    pub(super) fn begun(self, seed: u32) -> Result<(Task, State)> {
        let draft = match self {
            Self::Table => Draft::new(&Model::parse("native", table(seed).to_string().as_bytes())?, &rows(seed), None)?,
            Self::Llama => language(seed, "llama")?,
            Self::Gpt2 => language(seed, "gpt2")?,
        };
        Ok(Task::begin(&draft.training, &draft.data.training, draft.seed()))
    }
}

fn table(seed: u32) -> Value {
    json!({
        "name": "table",
        "layers": [{ "kind": "linear", "out": 96 }, { "kind": "relu" }, { "kind": "linear", "out": 64 }, { "kind": "gelu" }],
        "optimizer": { "learning_rate": 0.05, "momentum": 0.9 },
        "batch_size": 64, "micro_batches": 4, "steps": 400, "operand_bits": 8, "seed": seed
    })
}

/// Noise with a class that depends on it.
fn rows(seed: u32) -> Vec<u8> {
    let mut noise = Noise(seed);
    let row = |_| {
        let numbers: Vec<u32> = (0..24).map(|_| noise.below(100)).collect();
        let class = numbers.iter().step_by(5).sum::<u32>() / 90;
        let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
        format!("{},c{class}\n", numbers.join(","))
    };
    (0..600).map(row).collect::<String>().into_bytes()
}

fn language(seed: u32, shape: &str) -> Result<Draft> {
    let mut decoder = json!({ "shape": shape, "width": 64, "layers": 2, "heads": 4, "hidden": 128, "context": 32 });
    if let (Some(decoder), "llama") = (decoder.as_object_mut(), shape) {
        decoder.insert("kv_heads".to_owned(), 2.into());
    }
    let file = json!({
        "name": shape, "decoder": decoder,
        "optimizer": { "learning_rate": 0.003, "warmup": 10, "weight_decay": 0.1, "clip": 1.0 },
        "sequences": 4, "steps": 400, "operand_bits": 8, "seed": seed
    });
    let model = LanguageModel::parse("native", file.to_string().as_bytes())?;
    let Origin::Decoder(decoder) = model.origin() else { bail!("it is no decoder with sizes of its own") };
    Ok(Draft::language(&model, decoder, text(seed).as_bytes())?)
}

/// Words in a random order.
fn text(seed: u32) -> String {
    const WORDS: [&str; 12] =
        ["the", "word", "was", "in", "beginning", "and", "light", "shone", "darkness", "upon", "waters", "good"];
    let mut noise = Noise(seed);
    let words = (0..4000).map(|_| WORDS.get(noise.below(12) as usize).copied().unwrap_or_default());
    words.collect::<Vec<_>>().join(" ")
}

/// Knuth's multiplicative generator: the same everywhere.
struct Noise(u32);

impl Noise {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) % limit
    }
}
