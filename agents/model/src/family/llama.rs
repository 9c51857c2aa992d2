//! Llama 2 and 3, and what is said in its words: Mistral, Qwen 2 and 3.

use serde_json::{Value, json};

use super::Family;
use super::manner::{Manner, Read, Tokenizer, alone, tied};
use crate::architecture::{Activation, Architecture, Norm, Output, Placement, Positions, Rotary, Scaling};
use crate::config::rotary::{read_scaling, whole_heads};
use crate::config::{
    ConfigError, Fields, MAX_HEAD_WIDTH, MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_STATED_CONTEXT, MAX_VOCABULARY,
    MAX_WIDTH, activation, divides, epsilon, head_width,
};
use crate::export::words::{spelled, stretched};
use crate::gguf::{GgufError, Keys, scaling};
use crate::names::layer;

pub(super) const MANNER: Manner = Manner {
    published: &[("llama", &["LlamaForCausalLM", "LlamaModel"])],
    text: alone,
    read: |fields| read(fields, Family::Llama, &Own { biases: Biases::Stated, mlp_bias: true, ..Own::NONE }),
    write: Some(write),
    gguf: Some("llama"),
    known_keys: &[],
    keys,
    prefixes: &["model.", ""],
    module,
    idle: |architecture, inner, tensor| inner.ends_with("rotary_emb.inv_freq") || tied(architecture, tensor),
    oldest_names: false,
    conv1d: false,
    paired: true,
    gains_from: 0.0,
    padding: 0,
    tokenizer: Tokenizer { files: &["tokenizer.model"], cut: "gpt-2", fairseq: false },
};

/// In what a family of this kind differs.
pub(super) struct Own {
    /// Elements of a head, where a file does not say; else the width over the heads.
    pub(super) head_width: Option<u32>,
    pub(super) biases: Biases,
    /// Whether a file may say that the MLP has biases.
    pub(super) mlp_bias: bool,
    /// Whether queries and keys are normalised.
    pub(super) query_key_norm: bool,
    pub(super) slides: Slides,
}

impl Own {
    /// Nothing.
    pub(super) const NONE: Self =
        Self { head_width: None, biases: Biases::None, mlp_bias: false, query_key_norm: false, slides: Slides::Never };
}

/// Which projections of attention have biases.
pub(super) enum Biases {
    None,
    /// Those of queries, keys and values.
    Inputs,
    /// All, if a file says so.
    Stated,
}

/// Whether attention slides, where a file does not say it of each layer.
#[derive(Clone, Copy)]
pub(super) enum Slides {
    Never,
    Always,
    /// If a file says so.
    Stated,
}

/// The base of frequencies, where a file names none.
const THETA: f64 = 10_000.0;
/// Layers of Qwen before those whose attention slides, where a file does not say.
const MAX_WINDOW_LAYERS: u32 = 28;

/// Reads a configuration of Llama's kind.
///
/// # Errors
/// A [`ConfigError`] that names the field.
pub(super) fn read(fields: &Fields, family: Family, own: &Own) -> Result<Read, ConfigError> {
    let width = fields.size("hidden_size", MAX_WIDTH)?;
    let heads = fields.size("num_attention_heads", MAX_HEADS)?;
    let kv_heads = fields.whole("num_key_value_heads", 1, MAX_HEADS)?.unwrap_or(heads);
    divides(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
    let head_width = match fields.whole("head_dim", 1, MAX_HEAD_WIDTH)?.or(own.head_width) {
        Some(known) => known,
        None => {
            divides(("hidden_size", width), ("num_attention_heads", heads))?;
            head_width(fields, "num_attention_heads", width / heads)?
        }
    };
    let stated = fields.flag("attention_bias")?.unwrap_or(false);
    let (attention_bias, output_bias) = match own.biases {
        Biases::None => (false, false),
        Biases::Inputs => (true, false),
        Biases::Stated => (stated, stated),
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
        mlp_bias: own.mlp_bias && fields.flag("mlp_bias")?.unwrap_or(false),
        query_key_norm: own.query_key_norm,
        causal: true,
        output: Output::Logits { tied: fields.flag("tie_word_embeddings")?.unwrap_or(false) },
        dense: Vec::new(),
        pairs: false,
    };
    Ok((architecture, window(fields, own.slides)?))
}

/// The tokens that attention reaches back in some layer, if not all.
fn window(fields: &Fields, slides: Slides) -> Result<Option<u32>, ConfigError> {
    let kinds = fields.texts("layer_types")?;
    if let Some(other) = kinds.iter().find(|kind| !matches!(**kind, "full_attention" | "sliding_attention")) {
        return Err(ConfigError::Unsupported {
            field: fields.name("layer_types"),
            value: (*other).into(),
            supported: "full_attention and sliding_attention".into(),
        });
    }
    let slides = match slides {
        // What is said of each layer counts for more than what is said of all.
        _ if !kinds.is_empty() => kinds.contains(&"sliding_attention"),
        Slides::Never => false,
        Slides::Always => true,
        Slides::Stated => {
            let layers = fields.size("num_hidden_layers", MAX_LAYERS)?;
            // The first so many see all.
            let seeing = fields.whole("max_window_layers", 0, u32::MAX)?.unwrap_or(MAX_WINDOW_LAYERS);
            fields.flag("use_sliding_window")?.unwrap_or(false) && seeing < layers
        }
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

/// `config.json` of an architecture.
pub(super) fn write(a: &Architecture) -> Value {
    let (theta, scaling) = match &a.positions {
        Positions::Rotary(rotary) => (json!(rotary.theta), stretched(&rotary.scaling)),
        Positions::Learned { .. } => (Value::Null, Value::Null),
    };
    json!({
        "hidden_size": a.width,
        "num_hidden_layers": a.layers,
        "num_attention_heads": a.heads,
        "num_key_value_heads": a.kv_heads,
        "head_dim": a.head_width,
        "intermediate_size": a.hidden,
        "max_position_embeddings": a.context,
        "rms_norm_eps": a.epsilon,
        "hidden_act": spelled(a.activation),
        "attention_bias": a.attention_bias,
        "mlp_bias": a.mlp_bias,
        "rope_theta": theta,
        "rope_scaling": scaling,
        "use_sliding_window": false,
        "sliding_window": null,
    })
}

/// `config.json` of the metadata of a GGUF file.
pub(super) fn keys(keys: &Keys<'_, '_>) -> Result<Value, GgufError> {
    let (width, heads) = (keys.needed("embedding_length")?, keys.needed("attention.head_count")?);
    let head = keys.whole("attention.key_length")?.unwrap_or(width / heads.max(1));
    for key in ["attention.value_length", "rope.dimension_count"] {
        keys.must(key, head)?;
    }
    let theta = keys.file.number(&keys.name("rope.freq_base"))?.unwrap_or(10_000.0);
    // Bounds of both are the configuration's; a head out of them has no rotation to compare factors with.
    let pairs = u32::try_from(head).ok().filter(|head| *head <= MAX_HEAD_WIDTH);
    let rotary = Rotary { theta, width: pairs.unwrap_or(0), scaling: Scaling::None };
    let mut fields = json!({
        "hidden_size": width,
        "num_hidden_layers": keys.needed("block_count")?,
        "num_attention_heads": heads,
        "num_key_value_heads": keys.whole("attention.head_count_kv")?,
        "head_dim": head,
        "intermediate_size": keys.needed("feed_forward_length")?,
        "max_position_embeddings": keys.needed("context_length")?,
        "hidden_act": "silu",
        "rms_norm_eps": keys.epsilon("attention.layer_norm_rms_epsilon")?,
        "rope_theta": theta,
        "rope_scaling": scaling(keys.file, keys.arch, rotary)?,
        "attention_bias": keys.file.tensors.contains_key("blk.0.attn_q.bias"),
        "mlp_bias": keys.file.tensors.contains_key("blk.0.ffn_up.bias"),
        "tie_word_embeddings": keys.tied()?,
    });
    let window = keys.whole("attention.sliding_window")?.filter(|window| *window > 0);
    if let (Some(window), Some(fields)) = (window, fields.as_object_mut()) {
        fields.insert("sliding_window".to_owned(), window.into());
        // Whatever the family: attention slides because the file says so.
        fields.insert("layer_types".to_owned(), ["sliding_attention"].into());
    }
    keys.begins_and_ends(&mut fields)?;
    Ok(fields)
}

/// What files call a module.
pub(super) fn module(module: &str) -> Option<String> {
    let theirs = match module {
        "embedding.tokens" => "embed_tokens",
        "final.norm" => "norm",
        "head" => "lm_head",
        _ => {
            let (number, part) = layer(module)?;
            let theirs = match part {
                "attention.query" => "self_attn.q_proj",
                "attention.key" => "self_attn.k_proj",
                "attention.value" => "self_attn.v_proj",
                "attention.output" => "self_attn.o_proj",
                "attention.query_norm" => "self_attn.q_norm",
                "attention.key_norm" => "self_attn.k_norm",
                "attention.norm" => "input_layernorm",
                "mlp.up" => "mlp.up_proj",
                "mlp.gate" => "mlp.gate_proj",
                "mlp.down" => "mlp.down_proj",
                "mlp.norm" => "post_attention_layernorm",
                _ => return None,
            };
            return Some(format!("layers.{number}.{theirs}"));
        }
    };
    Some(theirs.to_owned())
}

/// Its tiny model.
#[cfg(any(test, feature = "fixture"))]
pub(super) mod tiny {
    use serde_json::{Value, json};

    use super::super::tiny::{CONTEXT, HEADS, HIDDEN, KV_HEADS, LAYERS, Shapes, Tiny, VOCABULARY, WIDTH};

    /// In what a tiny model of these words differs from Llama's.
    pub(in crate::family) struct Own {
        /// Width of a head.
        pub(in crate::family) head: usize,
        /// Whether its output has weights of its own.
        pub(in crate::family) output: bool,
        /// Whether queries, keys and values have biases.
        pub(in crate::family) biases: bool,
        /// Whether queries and keys are normalised.
        pub(in crate::family) head_norms: bool,
        /// Whether what a layer adds is normalised, too.
        pub(in crate::family) norms_after: bool,
    }

    impl Own {
        pub(in crate::family) const NONE: Self =
            Self { head: WIDTH / HEADS, output: true, biases: false, head_norms: false, norms_after: false };
    }

    /// A tiny model in these words: the kind and class of its configuration, what else that says, and how many layers.
    pub(in crate::family) fn written((kind, class): (&str, &str), more: Value, own: &Own, layers: usize) -> Tiny {
        let mut config = json!({
            "model_type": kind, "architectures": [class], "vocab_size": VOCABULARY, "hidden_size": WIDTH,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
            "intermediate_size": HIDDEN, "hidden_act": "silu", "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "bos_token_id": 0,
            "eos_token_id": 2 });
        if let (Value::Object(fields), Value::Object(more)) = (&mut config, more) {
            fields.extend(more);
        }
        let mut shapes: Shapes = vec![
            ("model.embed_tokens.weight".into(), vec![VOCABULARY, WIDTH]),
            ("model.norm.weight".into(), vec![WIDTH]),
        ];
        if own.output {
            shapes.push(("lm_head.weight".into(), vec![VOCABULARY, WIDTH]));
        }
        for n in 0..layers {
            for (part, outputs, inputs) in [
                ("self_attn.q_proj", HEADS * own.head, WIDTH),
                ("self_attn.k_proj", KV_HEADS * own.head, WIDTH),
                ("self_attn.v_proj", KV_HEADS * own.head, WIDTH),
                ("self_attn.o_proj", WIDTH, HEADS * own.head),
                ("mlp.gate_proj", HIDDEN, WIDTH),
                ("mlp.up_proj", HIDDEN, WIDTH),
                ("mlp.down_proj", WIDTH, HIDDEN),
            ] {
                shapes.push((format!("model.layers.{n}.{part}.weight"), vec![outputs, inputs]));
                if own.biases && matches!(part, "self_attn.q_proj" | "self_attn.k_proj" | "self_attn.v_proj") {
                    shapes.push((format!("model.layers.{n}.{part}.bias"), vec![outputs]));
                }
            }
            for part in ["input_layernorm", "post_attention_layernorm"] {
                shapes.push((format!("model.layers.{n}.{part}.weight"), vec![WIDTH]));
            }
            let around = ["pre_feedforward_layernorm", "post_feedforward_layernorm"];
            for part in around.into_iter().filter(|_| own.norms_after) {
                shapes.push((format!("model.layers.{n}.{part}.weight"), vec![WIDTH]));
            }
            if own.head_norms {
                shapes.push((format!("model.layers.{n}.self_attn.q_norm.weight"), vec![own.head]));
                shapes.push((format!("model.layers.{n}.self_attn.k_norm.weight"), vec![own.head]));
            }
        }
        Tiny { config, shapes }
    }

    pub(in crate::family) fn folder(layers: usize) -> Tiny {
        let more = json!({
            "attention_bias": false, "mlp_bias": false, "rope_theta": 100.0, "eos_token_id": [2, 3],
            "rope_scaling": { "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                              "original_max_position_embeddings": 128, "rope_type": "llama3" } });
        written(("llama", "LlamaForCausalLM"), more, &Own::NONE, layers)
    }
}
