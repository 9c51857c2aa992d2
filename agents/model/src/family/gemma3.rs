//! Gemma 3 (Gemma Team 2025), its text: a folder of text alone, or `text_config` of one that takes images as well.
//!
//! What a file leaves out is as in Hugging Face's own class: published files rely on it.

use serde_json::{Value, json};

use super::Family;
use super::llama;
use super::manner::{Manner, Read, Tokenizer, tied};
use crate::architecture::{Activation, Architecture, Local, Norm, Output, Placement, Positions, Rotary, Scaling};
use crate::config::rotary::{read_scaling, whole_heads};
use crate::config::{
    ConfigError, Fields, MAX_HEAD_WIDTH, MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_SCORE_SCALE, MAX_STATED_CONTEXT,
    MAX_VOCABULARY, MAX_WIDTH, TOKENS, activation, divides, epsilon,
};
use crate::export::words::{object, spelled, whole};
use crate::gguf::{GgufError, Keys, unsupported};
use crate::names::layer;

pub(super) const MANNER: Manner = Manner {
    published: &[
        ("gemma3_text", &["Gemma3ForCausalLM", "Gemma3TextModel"]),
        // One that takes images as well, of which the text is computed.
        ("gemma3", &["Gemma3ForConditionalGeneration", "Gemma3Model"]),
    ],
    text,
    read,
    write: Some(write),
    gguf: Some("gemma3"),
    known_keys: &[
        "attention.sliding_window_pattern",
        "attn_logit_softcapping",
        "final_logit_softcapping",
        "rope.freq_base_swa",
    ],
    keys,
    prefixes: &["model.", "", "language_model.model.", "model.language_model."],
    module,
    idle,
    oldest_names: false,
    conv1d: false,
    paired: false,
    gains_from: 1.0,
    padding: 0,
    tokenizer: Tokenizer { files: &["tokenizer.model"], cut: "gpt-2", fairseq: false },
};

/// Bases of the frequencies of layers that see all, and of the others.
const THETA: f64 = 1_000_000.0;
const LOCAL_THETA: f64 = 10_000.0;
/// Every so many-th layer sees all.
const PERIOD: u32 = 6;
/// Every how many-th layer sees all, where a GGUF file does not say.
const FILE_PERIOD: u64 = 6;
/// Layers of the one Gemma 3 whose scores are divided by the root of `width / heads`. Files do not say it; llama.cpp
/// knows it by the same number.
const LAYERS_27B: u64 = 62;

/// The fields of the text, where a folder takes images as well.
fn text(fields: Fields) -> Result<Fields, ConfigError> {
    match fields.object("text_config")? {
        Some(text) => Ok(text.or_else(&fields, &[&TOKENS[..], &["quantization_config"]].concat())),
        None => Ok(fields),
    }
}

fn read(fields: &Fields) -> Result<Read, ConfigError> {
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
    let architecture = Architecture {
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
    };
    Ok((architecture, None))
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

fn write(a: &Architecture) -> Value {
    let kind = |layer| if a.local(layer).is_some() { "sliding_attention" } else { "full_attention" };
    let own = json!({
        "hidden_activation": spelled(a.activation),
        "query_pre_attn_scalar": a.score_scale.map_or_else(|| a.head_width.into(), whole),
        "layer_types": (0..a.layers).map(kind).collect::<Vec<_>>(),
        // Hugging Face's class asks for both, whether or not a layer has them.
        "sliding_window": a.local.as_ref().map_or(a.context, |local| local.window),
        "rope_local_base_freq": a.local.as_ref().map_or(LOCAL_THETA, |local| local.rotary.theta),
        "attn_logit_softcapping": null,
        "final_logit_softcapping": null,
        "use_bidirectional_attention": false,
    });
    let mut fields = object(llama::write(a)).unwrap_or_default();
    fields.retain(|name, _| !["hidden_act", "mlp_bias", "use_sliding_window"].contains(&name.as_str()));
    fields.extend(object(own).unwrap_or_default());
    fields.into()
}

/// As Llama's, with what only Gemma has.
fn keys(keys: &Keys<'_, '_>) -> Result<Value, GgufError> {
    for key in ["attn_logit_softcapping", "final_logit_softcapping"] {
        if let Some(value) = keys.file.number(&keys.name(key))?.filter(|value| *value != 0.0) {
            return Err(unsupported(keys.name(key), &value, "0"));
        }
    }
    let (width, heads) = (keys.needed("embedding_length")?, keys.needed("attention.head_count")?);
    let of_width = keys.needed("block_count")? == LAYERS_27B;
    let stated = if of_width { None } else { keys.whole("attention.key_length")? };
    let slides = keys.whole("attention.sliding_window")?.is_some_and(|window| window > 0);
    let period = if slides { keys.whole("attention.sliding_window_pattern")?.unwrap_or(FILE_PERIOD) } else { 1 };
    let own = json!({
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": stated.unwrap_or(width / heads.max(1)),
        "rope_local_base_freq": keys.file.number(&keys.name("rope.freq_base_swa"))?.unwrap_or(LOCAL_THETA),
        "sliding_window_pattern": period,
    });
    let mut fields = object(llama::keys(keys)?).unwrap_or_default();
    fields.retain(|name, _| !["hidden_act", "mlp_bias", "layer_types"].contains(&name.as_str()));
    fields.extend(object(own).unwrap_or_default());
    Ok(fields.into())
}

/// As Llama's, with norms around.
fn module(module: &str) -> Option<String> {
    let theirs = match layer(module) {
        Some((number, "attention.output_norm")) => format!("layers.{number}.post_attention_layernorm"),
        Some((number, "mlp.norm")) => format!("layers.{number}.pre_feedforward_layernorm"),
        Some((number, "mlp.output_norm")) => format!("layers.{number}.post_feedforward_layernorm"),
        _ => return llama::module(module),
    };
    Some(theirs)
}

fn idle(architecture: &Architecture, _: &str, tensor: &str) -> bool {
    let bare = tensor.strip_prefix("model.").unwrap_or(tensor);
    let of_images = ["vision_tower.", "multi_modal_projector."].iter().any(|part| bare.starts_with(part));
    of_images || tied(architecture, tensor.strip_prefix("language_model.").unwrap_or(tensor))
}

/// Its tiny model.
#[cfg(any(test, feature = "fixture"))]
pub(super) mod tiny {
    use serde_json::json;

    use super::super::llama::tiny::{self as llama, Own};
    use super::super::tiny::{Tiny, WIDE_HEAD};

    pub(in crate::family) fn folder(layers: usize) -> Tiny {
        // The first layer sees three tokens, the second all.
        let more = json!({
            "head_dim": WIDE_HEAD, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 6,
            "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "rope_scaling": null, "sliding_window": 3,
            "sliding_window_pattern": 2, "attention_bias": false, "attn_logit_softcapping": null,
            "final_logit_softcapping": null, "tie_word_embeddings": true });
        let own = Own { head: WIDE_HEAD, output: false, head_norms: true, norms_after: true, ..Own::NONE };
        let mut tiny = llama::written(("gemma3_text", "Gemma3ForCausalLM"), more, &own, layers);
        tiny.config.as_object_mut().map(|fields| fields.remove("hidden_act"));
        tiny
    }
}
