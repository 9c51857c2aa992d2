//! `config.json` of a decoder, and of an encoder that tells classes of texts apart.

use serde_json::{Map, Value, json};

use super::super::architecture::{Activation, Architecture, Family, Output, Positions, Scaling};
use super::super::config::{LOCAL_THETA, TOKENS, describe, stated};
use super::ExportError;

/// What [`describe`] reads an architecture from, and Hugging Face's own loaders; no token begins or ends a text.
///
/// # Errors
/// [`ExportError::Unsaid`] for an encoder, whose pooling stands elsewhere or whose classes have names
/// ([`classifier_config`]), and for whatever its family never has.
pub fn config(architecture: &Architecture) -> Result<Vec<u8>, ExportError> {
    let unsaid = || ExportError::Unsaid(format!("{:?}", architecture.family).to_lowercase());
    let fields = match architecture.family {
        Family::Gpt2 => gpt2(architecture),
        Family::Llama | Family::Mistral | Family::Qwen2 | Family::Qwen3 => llama(architecture),
        Family::Gemma3 => gemma3(architecture),
        Family::Bert | Family::Roberta => return Err(unsaid()),
    };
    let (model_type, class) = stated(architecture.family).ok_or_else(unsaid)?;
    let shared = json!({
        "model_type": model_type,
        "architectures": [class],
        "vocab_size": architecture.vocabulary,
        "tie_word_embeddings": architecture.output == (Output::Logits { tied: true }),
        "torch_dtype": "float32",
        // Absent, they would be those of the family's own tokenizer.
        "bos_token_id": null,
        "eos_token_id": null,
        "pad_token_id": null,
    });
    let all: Map<String, Value> = [shared, fields].into_iter().filter_map(object).flatten().collect();
    let json = super::json(&all)?;
    match describe(&json, None) {
        Ok(read) if read.architecture == *architecture => Ok(json),
        _ => Err(unsaid()),
    }
}

/// The same of an encoder in the shape of BERT, with the names of its classes; texts are padded with its first token.
///
/// # Errors
/// [`ExportError::Unsaid`] for anything else, or another number of names.
pub fn classifier_config(a: &Architecture, classes: &[String]) -> Result<Vec<u8>, ExportError> {
    let unsaid = || ExportError::Unsaid("bert".to_owned());
    let all = json!({
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification"],
        "vocab_size": a.vocabulary,
        "hidden_size": a.width,
        "num_hidden_layers": a.layers,
        "num_attention_heads": a.heads,
        "intermediate_size": a.hidden,
        "hidden_act": spelled(a.activation),
        "max_position_embeddings": a.context,
        "type_vocab_size": u32::from(a.token_types),
        "layer_norm_eps": a.epsilon,
        "pad_token_id": 0,
        "torch_dtype": "float32",
    });
    let mut all = object(all).unwrap_or_default();
    all.extend(classes_of(classes));
    let json = super::json(&all)?;
    match describe(&json, None) {
        Ok(read) if read.architecture == *a && read.classes == classes && read.padding == 0 => Ok(json),
        _ => Err(unsaid()),
    }
}

/// Makes the configuration of a model that takes images as well that of its text, which is what is computed of it; any
/// other stays as it is.
pub fn text_alone(config: &mut Map<String, Value>) {
    let Some(Value::Object(mut text)) = config.remove("text_config") else { return };
    for token in TOKENS {
        if let (None, Some(value)) = (text.get(token), config.get(token)) {
            text.insert(token.to_owned(), value.clone());
        }
    }
    if let Some((model_type, class)) = stated(Family::Gemma3) {
        text.insert("model_type".to_owned(), model_type.into());
        text.insert("architectures".to_owned(), [class].into());
    }
    *config = text;
}

/// Fields of a configuration that name classes.
pub fn classes_of(classes: &[String]) -> Map<String, Value> {
    let numbered = || classes.iter().enumerate();
    let names: Map<String, Value> =
        numbered().map(|(number, name)| (number.to_string(), name.as_str().into())).collect();
    let numbers: Map<String, Value> = numbered().map(|(number, name)| (name.clone(), number.into())).collect();
    let problem = "single_label_classification";
    [("id2label", names.into()), ("label2id", numbers.into()), ("problem_type", problem.into())]
        .map(|(field, value): (&str, Value)| (field.to_owned(), value))
        .into_iter()
        .collect()
}

fn object(value: Value) -> Option<Map<String, Value>> {
    if let Value::Object(fields) = value { Some(fields) } else { None }
}

fn gpt2(a: &Architecture) -> Value {
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

fn llama(a: &Architecture) -> Value {
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

/// A number as Hugging Face's classes check it: without a point if it is whole.
fn whole(number: f64) -> Value {
    // SAFETY of the cast: it is compared with what it was.
    let rounded = number as u32;
    if f64::from(rounded) == number { rounded.into() } else { number.into() }
}

fn gemma3(a: &Architecture) -> Value {
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
    let mut fields = object(llama(a)).unwrap_or_default();
    fields.retain(|name, _| !["hidden_act", "mlp_bias", "use_sliding_window"].contains(&name.as_str()));
    fields.extend(object(own).unwrap_or_default());
    fields.into()
}

const fn spelled(activation: Activation) -> &'static str {
    match activation {
        Activation::Gelu => "gelu",
        Activation::GeluTanh => "gelu_new",
        Activation::Silu => "silu",
        Activation::Relu => "relu",
    }
}

fn stretched(scaling: &Scaling) -> Value {
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
