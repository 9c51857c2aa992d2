//! `model.json` to [`Model`], refusing whatever it does not know.

use serde::Deserialize;
use serde_json::Value;

use super::schedule::MAX_SCHEDULE;
use super::{
    Activation, Hidden, MAX_LAYERS, MAX_MICRO_BATCHES, MAX_MODEL_FILE, MAX_WIDTH, Model, ModelError, Optimizer,
};

/// The file as written, before its numbers are checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    name: String,
    layers: Vec<Value>,
    #[serde(default)]
    weights: Option<String>,
    optimizer: Optimizer,
    batch_size: u32,
    micro_batches: u32,
    steps: u32,
    operand_bits: u8,
    seed: u64,
}

/// A linear layer as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLinear {
    #[serde(rename = "kind")]
    _kind: String,
    out: u64,
}

/// An activation as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawActivation {
    #[serde(rename = "kind")]
    _kind: String,
}

/// A file without the mark that some editors put before UTF-8.
pub(super) fn unmarked(file: &[u8]) -> &[u8] {
    file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file)
}

impl Model {
    /// Parses and checks a model file; `file` is its name, for messages.
    ///
    /// # Errors
    /// A [`ModelError`] that names the file, the layer or field, and what to write instead.
    pub fn parse(file: &str, json: &[u8]) -> Result<Self, ModelError> {
        if json.len() > MAX_MODEL_FILE {
            return Err(ModelError::TooLarge { file: file.into(), bytes: json.len() });
        }
        let raw: RawModel = serde_json::from_slice(unmarked(json)).map_err(|error| syntax(file, "", &error))?;
        let range = |ok: bool, field: &str, value: String, allowed: &'static str| {
            let error = || ModelError::OutOfRange { file: file.into(), field: field.into(), value, allowed };
            if ok { Ok(()) } else { Err(error()) }
        };
        range((1..=64).contains(&raw.name.len()), "name", format!("`{}`", raw.name), "1 to 64 bytes")?;
        range(raw.layers.len() <= 2 * MAX_LAYERS, "layers", raw.layers.len().to_string(), "at most 126 layers")?;
        let Optimizer { learning_rate, momentum, warmup } = raw.optimizer;
        range(learning_rate > 0.0 && learning_rate <= 16.0, "learning_rate", learning_rate.to_string(), "(0, 16]")?;
        range((0.0..1.0).contains(&momentum), "momentum", momentum.to_string(), "[0, 1)")?;
        if let Some(warmup) = warmup {
            range(warmup < raw.steps, "warmup", warmup.to_string(), "fewer than steps")?;
            range(raw.steps <= MAX_SCHEDULE, "steps", raw.steps.to_string(), "1 to 1000000 with a warmup")?;
        }
        range((1..=MAX_WIDTH).contains(&raw.batch_size), "batch_size", raw.batch_size.to_string(), "1 to 4096")?;
        range(
            (1..=MAX_MICRO_BATCHES).contains(&raw.micro_batches) && raw.batch_size.is_multiple_of(raw.micro_batches),
            "micro_batches",
            raw.micro_batches.to_string(),
            "1 to 64, a divisor of batch_size",
        )?;
        range(matches!(raw.operand_bits, 8 | 16), "operand_bits", raw.operand_bits.to_string(), "8 or 16")?;
        let hidden = hidden(file, &raw.layers)?;
        range(hidden.len() < MAX_LAYERS, "layers", hidden.len().to_string(), "at most 63 linear layers")?;
        Ok(Self {
            name: raw.name,
            hidden,
            weights: raw.weights,
            optimizer: raw.optimizer,
            batch_size: raw.batch_size,
            micro_batches: raw.micro_batches,
            steps: steps(file, raw.steps)?,
            operand_bits: raw.operand_bits,
            seed: raw.seed,
        })
    }
}

/// Bounds the number of steps.
pub(super) fn steps(file: &str, steps: u32) -> Result<u32, ModelError> {
    if (1..=1 << 31).contains(&steps) {
        return Ok(steps);
    }
    Err(ModelError::OutOfRange {
        file: file.into(),
        field: "steps".into(),
        value: steps.to_string(),
        allowed: "1 to 2147483648",
    })
}

pub(super) fn syntax(file: &str, place: &str, error: &serde_json::Error) -> ModelError {
    ModelError::Syntax { file: file.into(), message: format!("{place}{error}") }
}

/// Pairs linear layers with the activations that follow them.
fn hidden(file: &str, layers: &[Value]) -> Result<Vec<Hidden>, ModelError> {
    let mut hidden: Vec<Hidden> = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        let error = |error: serde_json::Error| syntax(file, &format!("layers[{index}]: "), &error);
        let kind = layer.get("kind").and_then(Value::as_str).ok_or_else(|| ModelError::Syntax {
            file: file.into(),
            message: format!("layers[{index}] has no `kind`"),
        })?;
        let activation = match kind {
            "linear" => {
                let RawLinear { out, .. } = RawLinear::deserialize(layer).map_err(error)?;
                let what = || format!("{file}: layers[{index}]");
                if out == 0 {
                    let allowed = "1 to 4096";
                    return Err(ModelError::OutOfRange {
                        file: file.into(),
                        field: what(),
                        value: "0".into(),
                        allowed,
                    });
                }
                let width = u32::try_from(out).ok().filter(|out| *out <= MAX_WIDTH);
                let out = width.ok_or_else(|| ModelError::TooWide { what: what(), width: out })?;
                hidden.push(Hidden { out, activation: None });
                continue;
            }
            "relu" => Activation::Relu,
            "gelu" => Activation::Gelu,
            unknown => {
                return Err(ModelError::UnknownLayer { file: file.into(), layer: index, kind: unknown.into() });
            }
        };
        RawActivation::deserialize(layer).map_err(error)?;
        match hidden.last_mut() {
            Some(linear) if linear.activation.is_none() => linear.activation = Some(activation),
            _ => return Err(ModelError::StrayActivation { file: file.into(), layer: index }),
        }
    }
    Ok(hidden)
}
