//! What GGUF files call an architecture's parameters, and which layout each has.

use super::super::architecture::{Architecture, Output, Placement};
use super::super::layout::Layout;
use super::super::names::{Source, layer, shared};
use super::super::parameters::Parameter;

/// The weights of the token embedding.
pub(super) const EMBEDDING: &str = "token_embd.weight";
/// The output weights.
pub(crate) const HEAD: &str = "output.weight";
/// Factors of rotary frequencies, which the configuration has instead.
pub(super) const FACTORS: &str = "rope_freqs.weight";

/// Where a parameter of the architecture is found; none for a name that is not one.
pub(crate) fn source(a: &Architecture, parameter: &Parameter) -> Option<Source> {
    let whole = matches!(parameter.name.as_str(), "embedding.tokens" | "embedding.positions" | "embedding.type");
    let (module, leaf) = if whole { (parameter.name.as_str(), "weight") } else { parameter.name.rsplit_once('.')? };
    let leaf = match leaf {
        "gain" | "weight" => "weight",
        "bias" => "bias",
        _ => return None,
    };
    let theirs = match layer(module) {
        Some((number, part)) => format!("blk.{number}.{}", within(a, part)?),
        None => outside(module)?.to_owned(),
    };
    let layout = layout(a, module, leaf == "bias" || module.ends_with("norm"));
    Some(Source { names: vec![format!("{theirs}.{leaf}")], layout })
}

fn outside(module: &str) -> Option<&'static str> {
    Some(match module {
        "embedding.tokens" => "token_embd",
        "embedding.positions" => "position_embd",
        "embedding.type" => "token_types",
        "embedding.norm" => "token_embd_norm",
        "final.norm" => "output_norm",
        "head" => "output",
        _ => return None,
    })
}

fn within(a: &Architecture, part: &str) -> Option<&'static str> {
    let after = a.placement == Placement::After;
    Some(match part {
        "attention.query" | "attention.key" | "attention.value" if a.family.manner().conv1d => "attn_qkv",
        "attention.query" => "attn_q",
        "attention.key" => "attn_k",
        "attention.value" => "attn_v",
        "attention.output" => "attn_output",
        "attention.query_norm" => "attn_q_norm",
        "attention.key_norm" => "attn_k_norm",
        "attention.norm" if after => "attn_output_norm",
        "attention.norm" => "attn_norm",
        "attention.output_norm" => "post_attention_norm",
        "mlp.up" => "ffn_up",
        "mlp.gate" => "ffn_gate",
        "mlp.down" => "ffn_down",
        "mlp.norm" if after => "layer_output_norm",
        "mlp.norm" => "ffn_norm",
        "mlp.output_norm" => "post_ffw_norm",
        _ => return None,
    })
}

fn layout(a: &Architecture, module: &str, vector: bool) -> Layout {
    let manner = a.family.manner();
    match shared(module) {
        Some(part) if manner.conv1d && vector => Layout::Segment { part, parts: 3 },
        Some(part) if manner.conv1d => Layout::Rows { part, parts: 3 },
        Some(0 | 1) if manner.paired => Layout::Paired { head: a.head_width },
        _ if matches!(module, "embedding.positions" | "embedding.type") => Layout::FirstRows,
        _ if vector => Layout::Vector,
        _ => Layout::Matrix,
    }
}

/// Whether a tensor is known to play no part: factors that the configuration says, and the output weights of a tied
/// model, whose equality is checked elsewhere, and of one that makes vectors.
pub(crate) fn idle(architecture: &Architecture, tensor: &str) -> bool {
    tensor == FACTORS || tensor == HEAD && architecture.output != (Output::Logits { tied: false })
}
