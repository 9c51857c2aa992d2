//! What Hugging Face's files call an architecture's parameters, and which layout each has.

use super::architecture::{Architecture, Family, Output};
use super::layout::Layout;
use super::parameters::Parameter;

/// Name of the output weights.
pub(super) const HEAD: &str = "lm_head.weight";
/// What names of a head for classes begin with.
const CLASSIFIER: &str = "classifier.";
/// What the weights of a dense layer stand behind in its file.
const LINEAR: &str = "linear";
/// What names of dense layers begin with, whose files are of their own.
pub(super) const DENSE: &str = "dense.";

/// A name behind its folder's prefix, which those of heads and dense layers never have.
pub(super) fn full(prefix: &str, name: &str) -> String {
    if name == HEAD || [CLASSIFIER, DENSE].iter().any(|own| name.starts_with(own)) {
        name.to_owned()
    } else {
        format!("{prefix}{name}")
    }
}

/// Where a parameter is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Source {
    /// The names it may have, without the folder's prefix; see [`full`].
    pub(super) names: Vec<String>,
    pub(super) layout: Layout,
}

/// Prefixes that all names of a folder may have: with a head around the model first; without; within a model that takes
/// images as well.
pub(super) const fn prefixes(family: Family) -> &'static [&'static str] {
    match family {
        Family::Bert => &["bert.", ""],
        Family::Roberta => &["roberta.", ""],
        Family::Gpt2 => &["transformer.", ""],
        Family::Llama | Family::Mistral | Family::Qwen2 | Family::Qwen3 => &["model.", ""],
        Family::Gemma3 => &["model.", "", "language_model.model.", "model.language_model."],
    }
}

/// The prefix of a model with a head around it.
pub(super) fn prefix(family: Family) -> &'static str {
    prefixes(family).first().copied().unwrap_or_default()
}

/// What a family's files take off a parameter: Gemma's gains count from 1.
pub(super) fn taken_off(family: Family, parameter: &str) -> f32 {
    if family == Family::Gemma3 && parameter.ends_with(".gain") { 1.0 } else { 0.0 }
}

/// Where a parameter of the architecture is found; none for a name that is not one.
pub(super) fn source(family: Family, parameter: &Parameter) -> Option<Source> {
    let whole = matches!(parameter.name.as_str(), "embedding.tokens" | "embedding.positions" | "embedding.type");
    let (module, leaf) = if whole { (parameter.name.as_str(), "weight") } else { parameter.name.rsplit_once('.')? };
    let mut place = (module, None);
    let theirs = match family {
        _ if module.starts_with(DENSE) => format!("{module}.{LINEAR}"),
        Family::Bert | Family::Roberta => bert(module, family)?,
        Family::Gpt2 => gpt2(module, &mut place.1)?,
        Family::Llama | Family::Mistral | Family::Qwen2 | Family::Qwen3 => llama(module)?,
        Family::Gemma3 => gemma3(module)?,
    };
    let norm = module.ends_with("norm");
    let leaves: &[&str] = match leaf {
        // Checkpoints from TensorFlow's time.
        "gain" if family == Family::Bert => &["weight", "gamma"],
        "bias" if family == Family::Bert && norm => &["bias", "beta"],
        "gain" | "weight" => &["weight"],
        "bias" => &["bias"],
        _ => return None,
    };
    let projection = family == Family::Gpt2 && module.starts_with("layers.") && !norm;
    let layout = match (module, leaf, place.1) {
        ("embedding.positions" | "embedding.type", ..) => Layout::FirstRows,
        (_, "weight", part) if projection => {
            Layout::Transposed { part: part.unwrap_or(0), parts: if part.is_some() { 3 } else { 1 } }
        }
        (_, "weight", _) => Layout::Matrix,
        (_, _, Some(part)) => Layout::Segment { part, parts: 3 },
        _ => Layout::Vector,
    };
    Some(Source { names: leaves.iter().map(|leaf| format!("{theirs}.{leaf}")).collect(), layout })
}

/// Splits `layers.7.mlp.up` into `7` and `mlp.up`.
pub(super) fn layer(module: &str) -> Option<(&str, &str)> {
    module.strip_prefix("layers.")?.split_once('.')
}

/// RoBERTa keeps its pooler with its classes.
fn bert(module: &str, family: Family) -> Option<String> {
    let theirs = match module {
        "embedding.tokens" => "embeddings.word_embeddings",
        "embedding.positions" => "embeddings.position_embeddings",
        "embedding.type" => "embeddings.token_type_embeddings",
        "embedding.norm" => "embeddings.LayerNorm",
        "pooler" if family == Family::Roberta => "classifier.dense",
        "head" if family == Family::Roberta => "classifier.out_proj",
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

/// `part` is set for queries, keys and values, which share a tensor.
fn gpt2(module: &str, shared: &mut Option<u32>) -> Option<String> {
    let theirs = match module {
        "embedding.tokens" => "wte",
        "embedding.positions" => "wpe",
        "final.norm" => "ln_f",
        "head" => "lm_head",
        _ => {
            let (number, part) = layer(module)?;
            *shared = ["attention.query", "attention.key", "attention.value"]
                .iter()
                .position(|shared| *shared == part)
                .and_then(|part| u32::try_from(part).ok());
            let theirs = match part {
                _ if shared.is_some() => "attn.c_attn",
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

fn llama(module: &str) -> Option<String> {
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

/// As Llama's, with norms around.
fn gemma3(module: &str) -> Option<String> {
    let theirs = match layer(module) {
        Some((number, "attention.output_norm")) => format!("layers.{number}.post_attention_layernorm"),
        Some((number, "mlp.norm")) => format!("layers.{number}.pre_feedforward_layernorm"),
        Some((number, "mlp.output_norm")) => format!("layers.{number}.post_feedforward_layernorm"),
        _ => return llama(module),
    };
    Some(theirs)
}

/// Whether a tensor is known to play no part: buffers that are recomputed, heads and poolers beside the model, the
/// output weights of a tied model (their equality is checked elsewhere) and of one that makes vectors.
pub(super) fn idle(architecture: &Architecture, prefix: &str, tensor: &str) -> bool {
    let inner = tensor.strip_prefix(prefix).unwrap_or(tensor);
    match architecture.family {
        Family::Bert | Family::Roberta => {
            ["pooler.", "cls.", "lm_head."].iter().any(|head| inner.starts_with(head))
                || matches!(inner, "embeddings.position_ids" | "embeddings.token_type_ids")
        }
        Family::Gpt2 => {
            let buffer = inner.strip_prefix("h.").and_then(|rest| rest.split_once('.'));
            matches!(buffer, Some((_, "attn.bias" | "attn.masked_bias"))) || tied(architecture, tensor)
        }
        Family::Llama | Family::Mistral | Family::Qwen2 | Family::Qwen3 => {
            inner.ends_with("rotary_emb.inv_freq") || tied(architecture, tensor)
        }
        Family::Gemma3 => {
            let bare = tensor.strip_prefix("model.").unwrap_or(tensor);
            let of_images = ["vision_tower.", "multi_modal_projector."].iter().any(|part| bare.starts_with(part));
            of_images || tied(architecture, tensor.strip_prefix("language_model.").unwrap_or(tensor))
        }
    }
}

fn tied(architecture: &Architecture, tensor: &str) -> bool {
    tensor == HEAD && architecture.output != (Output::Logits { tied: false })
}
