//! GPT-2 (Radford et al. 2019); Llama 2 and 3, Mistral, Qwen 2 and 3.

use super::super::architecture::{
    Activation, Architecture, Family, Norm, Output, Placement, Positions, Rotary, Scaling,
};
use super::{
    ConfigError, Fields, MAX_HEAD_WIDTH, MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_STATED_CONTEXT, MAX_VOCABULARY,
    MAX_WIDTH, activation, divides, epsilon, head_width, learned,
};

/// The family's own base of frequencies, where a file names none.
const THETA: f64 = 10_000.0;
/// Layers of Qwen before those whose attention slides, where a file does not say.
const MAX_WINDOW_LAYERS: u32 = 28;

pub(super) fn gpt2(fields: &Fields) -> Result<Architecture, ConfigError> {
    fields.must("scale_attn_weights", true)?;
    fields.must("scale_attn_by_inverse_layer_idx", false)?;
    fields.must("add_cross_attention", false)?;
    let width = fields.size("n_embd", MAX_WIDTH)?;
    let heads = fields.size("n_head", MAX_HEADS)?;
    divides(("n_embd", width), ("n_head", heads))?;
    let (positions, context) = learned(fields, "n_positions", 0)?;
    Ok(Architecture {
        family: Family::Gpt2,
        vocabulary: fields.size("vocab_size", MAX_VOCABULARY)?,
        width,
        layers: fields.size("n_layer", MAX_LAYERS)?,
        heads,
        kv_heads: heads,
        head_width: head_width(fields, "n_head", width / heads)?,
        hidden: fields.whole("n_inner", 1, MAX_HIDDEN)?.unwrap_or(width.saturating_mul(4)),
        context,
        norm: Norm::Layer,
        epsilon: epsilon(fields, "layer_norm_epsilon", 1e-5)?,
        placement: Placement::Before,
        activation: activation(fields, "activation_function", Activation::GeluTanh)?,
        gated: false,
        positions,
        local: None,
        embedding_scale: None,
        score_scale: None,
        token_types: false,
        attention_bias: true,
        output_bias: true,
        mlp_bias: true,
        query_key_norm: false,
        causal: true,
        output: Output::Logits { tied: fields.flag("tie_word_embeddings")?.unwrap_or(true) },
        dense: Vec::new(),
        pairs: false,
    })
}

/// An architecture, and the window that its attention slides if it does.
pub(super) fn llama(fields: &Fields, family: Family) -> Result<(Architecture, Option<u32>), ConfigError> {
    let width = fields.size("hidden_size", MAX_WIDTH)?;
    let heads = fields.size("num_attention_heads", MAX_HEADS)?;
    let kv_heads = fields.whole("num_key_value_heads", 1, MAX_HEADS)?.unwrap_or(heads);
    divides(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
    let head_width = match fields.whole("head_dim", 1, MAX_HEAD_WIDTH)? {
        Some(stated) => stated,
        None if family == Family::Qwen3 => 128,
        None => {
            divides(("hidden_size", width), ("num_attention_heads", heads))?;
            head_width(fields, "num_attention_heads", width / heads)?
        }
    };
    let stated_bias = fields.flag("attention_bias")?.unwrap_or(false);
    let (attention_bias, output_bias) = match family {
        Family::Qwen2 => (true, false),
        Family::Llama | Family::Qwen3 => (stated_bias, stated_bias),
        _ => (false, false),
    };
    let architecture = Architecture {
        family,
        vocabulary: fields.size("vocab_size", MAX_VOCABULARY)?,
        width,
        layers: fields.size("num_hidden_layers", MAX_LAYERS)?,
        heads,
        kv_heads,
        head_width,
        hidden: fields.size("intermediate_size", MAX_HIDDEN)?,
        context: fields.size("max_position_embeddings", MAX_STATED_CONTEXT)?,
        norm: Norm::Rms,
        epsilon: epsilon(fields, "rms_norm_eps", 1e-6)?,
        placement: Placement::Before,
        activation: activation(fields, "hidden_act", Activation::Silu)?,
        gated: true,
        positions: Positions::Rotary(rotary(fields, head_width)?),
        local: None,
        embedding_scale: None,
        score_scale: None,
        token_types: false,
        attention_bias,
        output_bias,
        mlp_bias: family == Family::Llama && fields.flag("mlp_bias")?.unwrap_or(false),
        query_key_norm: family == Family::Qwen3,
        causal: true,
        output: Output::Logits { tied: fields.flag("tie_word_embeddings")?.unwrap_or(false) },
        dense: Vec::new(),
        pairs: false,
    };
    Ok((architecture, window(fields, family)?))
}

/// The tokens that attention reaches back in some layer, if not all.
fn window(fields: &Fields, family: Family) -> Result<Option<u32>, ConfigError> {
    let kinds = fields.texts("layer_types")?;
    if let Some(other) = kinds.iter().find(|kind| !matches!(**kind, "full_attention" | "sliding_attention")) {
        return Err(ConfigError::Unsupported {
            field: fields.name("layer_types"),
            value: (*other).into(),
            supported: "full_attention and sliding_attention".into(),
        });
    }
    let slides = match family {
        // What is said of each layer counts for more than what is said of all.
        _ if !kinds.is_empty() => kinds.contains(&"sliding_attention"),
        Family::Mistral => true,
        Family::Qwen2 | Family::Qwen3 => {
            let layers = fields.size("num_hidden_layers", MAX_LAYERS)?;
            // The first so many see all.
            let seeing = fields.whole("max_window_layers", 0, u32::MAX)?.unwrap_or(MAX_WINDOW_LAYERS);
            fields.flag("use_sliding_window")?.unwrap_or(false) && seeing < layers
        }
        _ => false,
    };
    if slides { fields.whole("sliding_window", 1, MAX_STATED_CONTEXT) } else { Ok(None) }
}

/// Rotary positions: `rope_theta` and `rope_scaling`, or both in `rope_parameters` as newer files have it.
fn rotary(fields: &Fields, width: u32) -> Result<Rotary, ConfigError> {
    if !width.is_multiple_of(2) {
        return Err(ConfigError::OddRotary(width));
    }
    whole_heads(fields)?;
    let theta = |fields: &Fields| fields.number("rope_theta", 1.5, 1e12);
    let (mut own, mut scaling) = (None, Scaling::None);
    let scaled = fields.object("rope_scaling")?;
    if let Some(parameters) = scaled.map_or_else(|| fields.object("rope_parameters"), |scaled| Ok(Some(scaled)))? {
        whole_heads(&parameters)?;
        (own, scaling) = (theta(&parameters)?, read_scaling(&parameters)?);
    }
    let theta = own.map_or_else(|| theta(fields), |own| Ok(Some(own)))?.unwrap_or(THETA);
    Ok(Rotary { theta, width, scaling })
}

/// These families rotate whole heads; a file that says otherwise is another model's.
pub(super) fn whole_heads(fields: &Fields) -> Result<(), ConfigError> {
    match fields.number("partial_rotary_factor", 0.0, 1.0)? {
        Some(part) if part < 1.0 => Err(ConfigError::Unsupported {
            field: fields.name("partial_rotary_factor"),
            value: part.to_string(),
            supported: "1".into(),
        }),
        _ => Ok(()),
    }
}

pub(super) fn read_scaling(fields: &Fields) -> Result<Scaling, ConfigError> {
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

/// Longest cosine or sine that the integers' table holds.
const MAX_AMPLITUDE: f64 = 1.99;

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
