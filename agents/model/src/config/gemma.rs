//! Gemma 3 (Gemma Team 2025), its text: a folder of text alone, or `text_config` of one that takes images as well.
//!
//! What a file leaves out is as in Hugging Face's own class: published files rely on it.

use super::super::architecture::{
    Activation, Architecture, Family, Local, Norm, Output, Placement, Positions, Rotary, Scaling,
};
use super::decoder::{read_scaling, whole_heads};
use super::{
    ConfigError, Fields, MAX_HEAD_WIDTH, MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_SCORE_SCALE, MAX_STATED_CONTEXT,
    MAX_VOCABULARY, MAX_WIDTH, TOKENS, activation, divides, epsilon,
};

/// Bases of the frequencies of layers that see all, and of the others.
const THETA: f64 = 1_000_000.0;
pub(crate) const LOCAL_THETA: f64 = 10_000.0;
/// Every so many-th layer sees all.
const PERIOD: u32 = 6;

/// The fields of the text, where a folder takes images as well.
pub(super) fn text(fields: Fields) -> Result<Fields, ConfigError> {
    match fields.object("text_config")? {
        Some(text) => Ok(text.or_else(&fields, &[&TOKENS[..], &["quantization_config"]].concat())),
        None => Ok(fields),
    }
}

pub(super) fn read(fields: &Fields) -> Result<Architecture, ConfigError> {
    fields.must("use_bidirectional_attention", false)?;
    fields.must("attention_bias", false)?;
    for field in ["attn_logit_softcapping", "final_logit_softcapping"] {
        if let Some(value) = fields.value(field) {
            let (value, supported) = (value.to_string(), "null".into());
            return Err(ConfigError::Unsupported { field: fields.name(field), value, supported });
        }
    }
    let or = |field: &str, most: u32, default: u32| Ok(fields.whole(field, 1, most)?.unwrap_or(default));
    let width = fields.size("hidden_size", MAX_WIDTH)?;
    let layers = fields.size("num_hidden_layers", MAX_LAYERS)?;
    let heads = or("num_attention_heads", MAX_HEADS, 8)?;
    let kv_heads = or("num_key_value_heads", MAX_HEADS, 4)?;
    divides(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
    let head_width = or("head_dim", MAX_HEAD_WIDTH, 256)?;
    let score_scale = fields.number("query_pre_attn_scalar", 1.0, MAX_SCORE_SCALE)?.unwrap_or(256.0);
    let (rotary, local_rotary) = rotary(fields, head_width)?;
    Ok(Architecture {
        family: Family::Gemma3,
        vocabulary: or("vocab_size", MAX_VOCABULARY, 262_208)?,
        width,
        layers,
        heads,
        kv_heads,
        head_width,
        hidden: fields.size("intermediate_size", MAX_HIDDEN)?,
        context: or("max_position_embeddings", MAX_STATED_CONTEXT, 131_072)?,
        norm: Norm::Rms,
        epsilon: epsilon(fields, "rms_norm_eps", 1e-6)?,
        placement: Placement::Around,
        activation: activation(fields, "hidden_activation", Activation::GeluTanh)?,
        gated: true,
        positions: Positions::Rotary(rotary),
        local: local(fields, layers, local_rotary)?,
        // In 32 bits, as weights are read.
        embedding_scale: Some(libm::sqrtf(width as f32).into()),
        score_scale: Some(score_scale).filter(|scale| *scale != f64::from(head_width)),
        token_types: false,
        attention_bias: false,
        output_bias: false,
        mlp_bias: false,
        query_key_norm: true,
        causal: true,
        output: Output::Logits { tied: fields.flag("tie_word_embeddings")?.unwrap_or(true) },
        dense: Vec::new(),
        pairs: false,
    })
}

/// The layers that see only the last tokens, if there are any.
fn local(fields: &Fields, layers: u32, rotary: Rotary) -> Result<Option<Local>, ConfigError> {
    let period = period(fields, layers)?;
    if period == 1 {
        return Ok(None);
    }
    let window = fields.whole("sliding_window", 1, MAX_STATED_CONTEXT)?;
    let window = window.ok_or_else(|| fields.missing("sliding_window"))?;
    Ok(Some(Local { window, period, rotary }))
}

/// Every how many-th layer sees all; more than there are layers if none does.
fn period(fields: &Fields, layers: u32) -> Result<u32, ConfigError> {
    let most = layers.saturating_add(1);
    let kinds = fields.texts("layer_types")?;
    if kinds.is_empty() {
        let stated = fields.whole("sliding_window_pattern", 1, MAX_LAYERS)?;
        return Ok(stated.unwrap_or(PERIOD).min(most));
    }
    let before = kinds.iter().position(|kind| *kind == "full_attention");
    let period = before.and_then(|before| u32::try_from(before).ok()).map_or(most, |before| before.saturating_add(1));
    let due = (1..=layers).map(|number| if number % period == 0 { "full_attention" } else { "sliding_attention" });
    if due.eq(kinds.iter().copied()) {
        return Ok(period);
    }
    Err(ConfigError::Unsupported {
        field: fields.name("layer_types"),
        value: kinds.join(", "),
        supported: "sliding_attention with full_attention in every so many-th layer".into(),
    })
}

/// Rotary positions of layers that see all, and of the others: `rope_theta`, `rope_scaling` and
/// `rope_local_base_freq`, or both in `rope_parameters` as newer files have it.
fn rotary(fields: &Fields, width: u32) -> Result<(Rotary, Rotary), ConfigError> {
    if !width.is_multiple_of(2) {
        return Err(ConfigError::OddRotary(width));
    }
    whole_heads(fields)?;
    let read = |kind: &str, (older, scaling, theta): (&str, &str, f64)| {
        let newer = match fields.object("rope_parameters")? {
            Some(kinds) => Some(kinds.object(kind)?.ok_or_else(|| kinds.missing(kind))?),
            None => None,
        };
        let stretched = newer.map_or_else(|| fields.object(scaling), |newer| Ok(Some(newer)))?;
        let mut rotary = Rotary { theta, width, scaling: Scaling::None };
        if let Some(stated) = fields.number(older, 1.5, 1e12)? {
            rotary.theta = stated;
        }
        if let Some(parameters) = stretched {
            whole_heads(&parameters)?;
            rotary.scaling = read_scaling(&parameters)?;
            rotary.theta = parameters.number("rope_theta", 1.5, 1e12)?.unwrap_or(rotary.theta);
        }
        Ok::<_, ConfigError>(rotary)
    };
    let all = read("full_attention", ("rope_theta", "rope_scaling", THETA))?;
    // No older file stretches those that do not see all.
    let local = read("sliding_attention", ("rope_local_base_freq", "", LOCAL_THETA))?;
    Ok((all, local))
}
