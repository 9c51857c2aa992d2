//! BERT (Devlin et al. 2018) and MiniLM, and what is said in its words: RoBERTa.

use serde_json::{Value, json};

use super::Family;
use super::manner::{Manner, Read, Tokenizer, WORDS, alone};
use crate::architecture::{Activation, Architecture, Norm, Output, Placement, Pooling};
use crate::config::{
    ConfigError, Fields, MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_VOCABULARY, MAX_WIDTH, activation, classes, divides,
    epsilon, head_width, learned,
};
use crate::gguf::{GgufError, Keys};
use crate::names::layer;

pub(super) const MANNER: Manner = Manner {
    published: &[("bert", &["BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForSequenceClassification"])],
    text: alone,
    read: |fields| read(fields, Family::Bert, false),
    write: None,
    gguf: Some("bert"),
    known_keys: &[],
    keys,
    prefixes: &["bert.", ""],
    module,
    idle: |_, inner, _| {
        ["pooler.", "cls.", "lm_head."].iter().any(|head| inner.starts_with(head))
            || matches!(inner, "embeddings.position_ids" | "embeddings.token_type_ids")
    },
    oldest_names: true,
    conv1d: false,
    paired: false,
    gains_from: 0.0,
    padding: 0,
    tokenizer: Tokenizer { files: &[WORDS], cut: "gpt-2", fairseq: false },
};

/// Reads a configuration of BERT's kind, whose positions may begin after that of padding.
///
/// # Errors
/// A [`ConfigError`] that names the field.
pub(super) fn read(fields: &Fields, family: Family, after_padding: bool) -> Result<Read, ConfigError> {
    fields.must("is_decoder", false)?;
    fields.must("add_cross_attention", false)?;
    if let Some(kind) = fields.text("position_embedding_type")?.filter(|kind| *kind != "absolute") {
        let (field, supported) = (fields.name("position_embedding_type"), "absolute".into());
        return Err(ConfigError::Unsupported { field, value: kind.into(), supported });
    }
    let vocabulary = fields.size("vocab_size", MAX_VOCABULARY)?;
    let width = fields.size("hidden_size", MAX_WIDTH)?;
    let heads = fields.size("num_attention_heads", MAX_HEADS)?;
    divides(("hidden_size", width), ("num_attention_heads", heads))?;
    let head_width = head_width(fields, "num_attention_heads", width / heads)?;
    let first = if after_padding {
        fields.whole("pad_token_id", 0, vocabulary)?.unwrap_or(family.padding()).saturating_add(1)
    } else {
        0
    };
    let classes = classes(fields)?.len();
    let kinds = fields.whole("type_vocab_size", 0, MAX_VOCABULARY)?.unwrap_or(2);
    let (positions, context) = learned(fields, "max_position_embeddings", first)?;
    let architecture = Architecture {
        family,
        vocabulary,
        width,
        layers: fields.size("num_hidden_layers", MAX_LAYERS)?,
        heads,
        kv_heads: heads,
        head_width,
        hidden: fields.size("intermediate_size", MAX_HIDDEN)?,
        context,
        norm: Norm::Layer,
        epsilon: epsilon(fields, "layer_norm_eps", 1e-12)?,
        placement: Placement::After,
        activation: activation(fields, "hidden_act", Activation::Gelu)?,
        gated: false,
        positions,
        local: None,
        embedding_scale: None,
        score_scale: None,
        token_types: kinds > 0,
        attention_bias: true,
        output_bias: true,
        mlp_bias: true,
        query_key_norm: false,
        causal: false,
        output: match classes {
            0 => Output::Embedding(Pooling::Mean),
            // SAFETY of the cast: at most 4096.
            classes => Output::Classes(classes as u32),
        },
        dense: Vec::new(),
        // A score is that of a pair of texts.
        pairs: classes == 1 && kinds > 1,
    };
    Ok((architecture, None))
}

/// `config.json` of the metadata of a GGUF file.
fn keys(keys: &Keys<'_, '_>) -> Result<Value, GgufError> {
    let types = keys.file.tensors.get("token_types.weight").and_then(|types| types.shape.first());
    Ok(json!({
        "hidden_size": keys.needed("embedding_length")?,
        "num_hidden_layers": keys.needed("block_count")?,
        "num_attention_heads": keys.needed("attention.head_count")?,
        "intermediate_size": keys.needed("feed_forward_length")?,
        "max_position_embeddings": keys.needed("context_length")?,
        "type_vocab_size": types.copied().unwrap_or(0),
        "hidden_act": "gelu",
        "layer_norm_eps": keys.epsilon("attention.layer_norm_epsilon")?,
    }))
}

/// What files call a module, but for those of classes.
pub(super) fn module(module: &str) -> Option<String> {
    let theirs = match module {
        "embedding.tokens" => "embeddings.word_embeddings",
        "embedding.positions" => "embeddings.position_embeddings",
        "embedding.type" => "embeddings.token_type_embeddings",
        "embedding.norm" => "embeddings.LayerNorm",
        "pooler" => "pooler.dense",
        "head" => "classifier",
        _ => {
            let (number, part) = layer(module)?;
            let theirs = match part {
                "attention.query" => "attention.self.query",
                "attention.key" => "attention.self.key",
                "attention.value" => "attention.self.value",
                "attention.output" => "attention.output.dense",
                "attention.norm" => "attention.output.LayerNorm",
                "mlp.up" => "intermediate.dense",
                "mlp.down" => "output.dense",
                "mlp.norm" => "output.LayerNorm",
                _ => return None,
            };
            return Some(format!("encoder.layer.{number}.{theirs}"));
        }
    };
    Some(theirs.to_owned())
}

/// Its tiny model.
#[cfg(any(test, feature = "fixture"))]
pub(super) mod tiny {
    use serde_json::json;

    use super::super::tiny::{CONTEXT, HEADS, HIDDEN, LAYERS, Tiny, VOCABULARY, WIDTH};

    /// A tiny model in these words: the kind and class of its configuration, what its names begin with, rows of
    /// positions, types of tokens.
    pub(in crate::family) fn written(kind: &str, class: &str, prefix: &str, (rows, types): (usize, usize)) -> Tiny {
        let config = json!({
            "model_type": kind, "architectures": [class], "vocab_size": VOCABULARY, "hidden_size": WIDTH,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": HIDDEN,
            "hidden_act": "gelu", "max_position_embeddings": rows, "type_vocab_size": types,
            "layer_norm_eps": 1e-12, "pad_token_id": 1, "position_embedding_type": "absolute" });
        let mut shapes = vec![
            (format!("{prefix}embeddings.word_embeddings.weight"), vec![VOCABULARY, WIDTH]),
            (format!("{prefix}embeddings.position_embeddings.weight"), vec![rows, WIDTH]),
            (format!("{prefix}embeddings.token_type_embeddings.weight"), vec![types, WIDTH]),
            (format!("{prefix}embeddings.LayerNorm.weight"), vec![WIDTH]),
            (format!("{prefix}embeddings.LayerNorm.bias"), vec![WIDTH]),
            (format!("{prefix}pooler.dense.weight"), vec![WIDTH, WIDTH]),
            (format!("{prefix}pooler.dense.bias"), vec![WIDTH]),
        ];
        for n in 0..LAYERS {
            for (part, outputs, inputs) in [
                ("attention.self.query", WIDTH, WIDTH),
                ("attention.self.key", WIDTH, WIDTH),
                ("attention.self.value", WIDTH, WIDTH),
                ("attention.output.dense", WIDTH, WIDTH),
                ("intermediate.dense", HIDDEN, WIDTH),
                ("output.dense", WIDTH, HIDDEN),
            ] {
                shapes.push((format!("{prefix}encoder.layer.{n}.{part}.weight"), vec![outputs, inputs]));
                shapes.push((format!("{prefix}encoder.layer.{n}.{part}.bias"), vec![outputs]));
            }
            for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
                shapes.push((format!("{prefix}encoder.layer.{n}.{part}.weight"), vec![WIDTH]));
                shapes.push((format!("{prefix}encoder.layer.{n}.{part}.bias"), vec![WIDTH]));
            }
        }
        Tiny { config, shapes }
    }

    pub(in crate::family) fn folder(_: usize) -> Tiny {
        written("bert", "BertForMaskedLM", "bert.", (CONTEXT, 2))
    }
}
