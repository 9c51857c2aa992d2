//! The stretching of rotary positions, in the words of `rope_scaling`.

use serde_json::{Value, json};

use super::super::architecture::{Rotary, Scaling};
use super::super::import::decode::{Dtype, floats};
use super::super::layout::Layout;
use super::container::{Gguf, Stored};
use super::error::GgufError;
use super::names::FACTORS;

/// Bounds of Llama 3's ramp: its converter writes the factors of no other.
const LOW: f64 = 1.0;
const HIGH: f64 = 4.0;

/// `rope_scaling` of an architecture's keys and of the tensor of factors; null if nothing is stretched.
pub(crate) fn scaling(file: &Gguf<'_>, arch: &str, rotary: Rotary) -> Result<Value, GgufError> {
    let key = |name: &str| format!("{arch}.rope.scaling.{name}");
    let number = |name: &str| file.number(&key(name));
    // A factor alone stretches linearly, as llama.cpp has it.
    let kind = file.text(&key("type"))?.or(number("factor")?.map(|_| "linear"));
    let stretched = match kind {
        None | Some("none") => Value::Null,
        Some("linear") => json!({ "rope_type": "linear", "factor": number("factor")? }),
        Some("yarn") => json!({
            "rope_type": "yarn",
            "factor": number("factor")?,
            "original_max_position_embeddings": file.whole(&key("original_context_length"))?,
            "beta_fast": number("yarn_beta_fast")?,
            "beta_slow": number("yarn_beta_slow")?,
        }),
        Some(other) => {
            return Err(GgufError::Unsupported {
                key: key("type"),
                value: other.to_owned(),
                supported: "none, linear or yarn".to_owned(),
            });
        }
    };
    match file.tensors.get(FACTORS) {
        None => Ok(stretched),
        Some(_) if !stretched.is_null() => Err(GgufError::Factors),
        Some(factors) => llama3(factors, rotary).ok_or(GgufError::Factors),
    }
}

/// Llama 3's rule, out of the factors that it gives: the file does not say what it was. The first rule that gives them
/// all is taken; another that does so turns no pair otherwise.
fn llama3(factors: &Stored<'_>, rotary: Rotary) -> Option<Value> {
    let pairs = rotary.width / 2;
    let (shape, window) = Layout::Vector.place(1, pairs);
    if factors.shape != shape || factors.dtype != Dtype::F32 {
        return None;
    }
    let factors = floats(factors.dtype, factors.data, &window);
    let largest = factors.iter().copied().fold(1.0, f32::max);
    let plain = Rotary { scaling: Scaling::None, ..rotary }.frequencies();
    let powers = (1..=7).map(|power| f64::from(1 << power));
    let candidates = std::iter::once(f64::from(largest)).chain(powers);
    for factor in candidates.filter(|factor| *factor > 1.0) {
        for power in 6..=20 {
            let original_context = 1 << power;
            let scaling = Scaling::Llama3 { factor, low: LOW, high: HIGH, original_context };
            let stretched = Rotary { scaling, ..rotary }.frequencies();
            let given = plain.iter().zip(&stretched).zip(&factors);
            // The converter computes in 32 bits.
            if given
                .into_iter()
                .all(|((plain, stretched), factor)| (plain / stretched / f64::from(*factor) - 1.0).abs() < 1e-4)
            {
                return Some(json!({
                    "rope_type": "llama3",
                    "factor": factor,
                    "low_freq_factor": LOW,
                    "high_freq_factor": HIGH,
                    "original_max_position_embeddings": original_context,
                }));
            }
        }
    }
    None
}
