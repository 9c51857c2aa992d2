//! How values are written in a configuration.

use serde_json::{Map, Value, json};

use crate::architecture::{Activation, Scaling};

pub(crate) const fn spelled(activation: Activation) -> &'static str {
    match activation {
        Activation::Gelu => "gelu",
        Activation::GeluTanh => "gelu_new",
        Activation::Silu => "silu",
        Activation::Relu => "relu",
    }
}

pub(crate) fn stretched(scaling: &Scaling) -> Value {
    match *scaling {
        Scaling::None => Value::Null,
        Scaling::Linear { factor } => json!({ "rope_type": "linear", "factor": factor }),
        Scaling::Llama3 { factor, low, high, original_context } => json!({
            "rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
            "original_max_position_embeddings": original_context,
        }),
        Scaling::Yarn { factor, fast, slow, original_context, amplitude } => json!({
            "rope_type": "yarn", "factor": factor, "beta_fast": fast, "beta_slow": slow,
            "original_max_position_embeddings": original_context, "attention_factor": amplitude,
        }),
    }
}

/// A number as Hugging Face's classes check it: without a point if it is whole.
pub(crate) fn whole(number: f64) -> Value {
    // SAFETY of the cast: it is compared with what it was.
    let rounded = number as u32;
    if f64::from(rounded) == number { rounded.into() } else { number.into() }
}

pub(crate) fn object(value: Value) -> Option<Map<String, Value>> {
    if let Value::Object(fields) = value { Some(fields) } else { None }
}
