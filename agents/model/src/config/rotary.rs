//! How rotary positions are stretched.

use super::{ConfigError, Fields, MAX_STATED_CONTEXT};
use crate::architecture::Scaling;

/// Longest cosine or sine that the integers' table holds.
const MAX_AMPLITUDE: f64 = 1.99;

/// These families rotate whole heads; a file that says otherwise is another model's.
pub(crate) fn whole_heads(fields: &Fields) -> Result<(), ConfigError> {
    match fields.number("partial_rotary_factor", 0.0, 1.0)? {
        Some(part) if part < 1.0 => Err(ConfigError::Unsupported {
            field: fields.name("partial_rotary_factor"),
            value: part.to_string(),
            supported: "1".into(),
        }),
        _ => Ok(()),
    }
}

/// What `rope_scaling` says.
pub(crate) fn read_scaling(fields: &Fields) -> Result<Scaling, ConfigError> {
    let kind = match fields.text("rope_type")? {
        Some(kind) => Some(kind),
        None => fields.text("type")?,
    };
    let number =
        |field: &str, least: f64, most: f64| fields.number(field, least, most)?.ok_or_else(|| fields.missing(field));
    match kind {
        None | Some("default") => Ok(Scaling::None),
        Some("linear") => Ok(Scaling::Linear { factor: number("factor", 1.0, 1e6)? }),
        Some("llama3") => {
            let (low, high) = (number("low_freq_factor", 1e-6, 1e6)?, number("high_freq_factor", 1e-6, 1e6)?);
            if high <= low {
                let field = fields.name("");
                return Err(ConfigError::Ramp { field, low: low.to_string(), high: high.to_string() });
            }
            let original_context = fields.size("original_max_position_embeddings", MAX_STATED_CONTEXT)?;
            Ok(Scaling::Llama3 { factor: number("factor", 1.0, 1e6)?, low, high, original_context })
        }
        Some("yarn") => yarn(fields, number("factor", 1.0, 1e4)?),
        Some(other) => Err(ConfigError::Scaling(other.into())),
    }
}

/// YaRN (Peng et al. 2023) as Hugging Face has it.
fn yarn(fields: &Fields, factor: f64) -> Result<Scaling, ConfigError> {
    fields.must("truncate", true)?;
    for field in ["mscale", "mscale_all_dim"] {
        if let Some(value) = fields.value(field) {
            let (value, supported) = (value.to_string(), "attention_factor".into());
            return Err(ConfigError::Unsupported { field: fields.name(field), value, supported });
        }
    }
    let turns = |field: &str, default: f64| Ok(fields.number(field, 1e-6, 1e6)?.unwrap_or(default));
    let (fast, slow) = (turns("beta_fast", 32.0)?, turns("beta_slow", 1.0)?);
    if fast <= slow {
        let (field, value) = (fields.name("beta_fast"), fast.to_string());
        return Err(ConfigError::OutOfRange { field, value, allowed: format!("more than beta_slow, {slow}") });
    }
    let stated = fields.number("attention_factor", 1e-3, MAX_AMPLITUDE)?;
    let amplitude = stated.unwrap_or_else(|| 0.1 * libm::log(factor) + 1.0);
    let original_context = fields.size("original_max_position_embeddings", MAX_STATED_CONTEXT)?;
    Ok(Scaling::Yarn { factor, fast, slow, original_context, amplitude })
}
