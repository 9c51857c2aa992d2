//! GPT-2 (Radford et al. 2019).

use serde_json::{Value, json};

use super::Family;
use super::manner::{Manner, PAIRS, Read, TOKENS, Tokenizer, alone, tied};
use crate::architecture::{Activation, Architecture, Norm, Output, Placement};
use crate::config::{
    ConfigError, Fields, MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_VOCABULARY, MAX_WIDTH, activation, divides, epsilon,
    head_width, learned,
};
use crate::export::words::spelled;
use crate::gguf::{GgufError, Keys};
use crate::names::layer;

pub(super) const MANNER: Manner = Manner {
    published: &[("gpt2", &["GPT2LMHeadModel", "GPT2Model"])],
    text: alone,
    read,
    write: Some(write),
    gguf: Some("gpt2"),
    known_keys: &[],
    keys,
    prefixes: &["transformer.", ""],
    module,
    idle,
    oldest_names: false,
    conv1d: true,
    paired: false,
    gains_from: 0.0,
    padding: 0,
    tokenizer: Tokenizer { files: &[TOKENS, PAIRS], cut: "gpt-2", fairseq: false },
};

fn read(fields: &Fields) -> Result<Read, ConfigError> {
    fields.must("scale_attn_weights", true)?;
    fields.must("scale_attn_by_inverse_layer_idx", false)?;
    fields.must("add_cross_attention", false)?;
    let width = fields.size("n_embd", MAX_WIDTH)?;
    let heads = fields.size("n_head", MAX_HEADS)?;
    divides(("n_embd", width), ("n_head", heads))?;
    let (positions, context) = learned(fields, "n_positions", 0)?;
    let architecture = Architecture {
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
    };
    Ok((architecture, None))
}

fn write(a: &Architecture) -> Value {
    json!({
        "n_embd": a.width,
        "n_head": a.heads,
        "n_layer": a.layers,
        "n_inner": a.hidden,
        "n_positions": a.context,
        "layer_norm_epsilon": a.epsilon,
        "activation_function": spelled(a.activation),
    })
}

/// `config.json` of the metadata of a GGUF file.
fn keys(keys: &Keys<'_, '_>) -> Result<Value, GgufError> {
    let mut fields = json!({
        "n_embd": keys.needed("embedding_length")?,
        "n_layer": keys.needed("block_count")?,
        "n_head": keys.needed("attention.head_count")?,
        "n_positions": keys.needed("context_length")?,
        "n_inner": keys.needed("feed_forward_length")?,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": keys.epsilon("attention.layer_norm_epsilon")?,
        "tie_word_embeddings": keys.tied()?,
    });
    keys.begins_and_ends(&mut fields)?;
    Ok(fields)
}

fn module(module: &str) -> Option<String> {
    let theirs = match module {
        "embedding.tokens" => "wte",
        "embedding.positions" => "wpe",
        "final.norm" => "ln_f",
        "head" => "lm_head",
        _ => {
            let (number, part) = layer(module)?;
            let theirs = match part {
                "attention.query" | "attention.key" | "attention.value" => "attn.c_attn",
                "attention.output" => "attn.c_proj",
                "attention.norm" => "ln_1",
                "mlp.up" => "mlp.c_fc",
                "mlp.down" => "mlp.c_proj",
                "mlp.norm" => "ln_2",
                _ => return None,
            };
            return Some(format!("h.{number}.{theirs}"));
        }
    };
    Some(theirs.to_owned())
}

/// Buffers of masks that are made anew.
fn idle(architecture: &Architecture, inner: &str, tensor: &str) -> bool {
    let buffer = inner.strip_prefix("h.").and_then(|rest| rest.split_once('.'));
    matches!(buffer, Some((_, "attn.bias" | "attn.masked_bias"))) || tied(architecture, tensor)
}

/// Its tiny model.
#[cfg(any(test, feature = "fixture"))]
pub(super) mod tiny {
    use serde_json::json;

    use super::super::tiny::{CONTEXT, HEADS, HIDDEN, LAYERS, Shapes, Tiny, VOCABULARY, WIDTH};

    pub(in crate::family) fn folder(_: usize) -> Tiny {
        let config = json!({
            "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": VOCABULARY, "n_embd": WIDTH,
            "n_layer": LAYERS, "n_head": HEADS, "n_positions": CONTEXT, "n_ctx": CONTEXT, "n_inner": HIDDEN,
            "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "bos_token_id": 0, "eos_token_id": 2 });
        let mut shapes: Shapes = vec![
            ("transformer.wte.weight".into(), vec![VOCABULARY, WIDTH]),
            ("transformer.wpe.weight".into(), vec![CONTEXT, WIDTH]),
            ("transformer.ln_f.weight".into(), vec![WIDTH]),
            ("transformer.ln_f.bias".into(), vec![WIDTH]),
        ];
        for n in 0..LAYERS {
            shapes.push((format!("transformer.h.{n}.attn.bias"), vec![1, 1, CONTEXT, CONTEXT]));
            for part in ["ln_1", "ln_2"] {
                shapes.push((format!("transformer.h.{n}.{part}.weight"), vec![WIDTH]));
                shapes.push((format!("transformer.h.{n}.{part}.bias"), vec![WIDTH]));
            }
            for (part, inputs, outputs) in [
                ("attn.c_attn", WIDTH, 3 * WIDTH),
                ("attn.c_proj", WIDTH, WIDTH),
                ("mlp.c_fc", WIDTH, HIDDEN),
                ("mlp.c_proj", HIDDEN, WIDTH),
            ] {
                shapes.push((format!("transformer.h.{n}.{part}.weight"), vec![inputs, outputs]));
                shapes.push((format!("transformer.h.{n}.{part}.bias"), vec![outputs]));
            }
        }
        Tiny { config, shapes }
    }
}
