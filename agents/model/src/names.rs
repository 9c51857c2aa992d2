//! What Hugging Face's files call an architecture's parameters, and which layout each has.

use super::architecture::Architecture;
use super::family::Family;
use super::layout::Layout;
use super::parameters::Parameter;

/// Name of the output weights.
pub(crate) const HEAD: &str = "lm_head.weight";
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

/// Where a parameter of the architecture is found; none for a name that is not one.
pub(super) fn source(family: Family, parameter: &Parameter) -> Option<Source> {
    let whole = matches!(parameter.name.as_str(), "embedding.tokens" | "embedding.positions" | "embedding.type");
    let (module, leaf) = if whole { (parameter.name.as_str(), "weight") } else { parameter.name.rsplit_once('.')? };
    let manner = family.manner();
    let theirs = if module.starts_with(DENSE) { format!("{module}.{LINEAR}") } else { (manner.module)(module)? };
    let norm = module.ends_with("norm");
    let leaves: &[&str] = match leaf {
        "gain" if manner.oldest_names => &["weight", "gamma"],
        "bias" if manner.oldest_names && norm => &["bias", "beta"],
        "gain" | "weight" => &["weight"],
        "bias" => &["bias"],
        _ => return None,
    };
    let shared = if manner.conv1d { shared(module) } else { None };
    let projection = manner.conv1d && module.starts_with("layers.") && !norm;
    let layout = match (module, leaf, shared) {
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
pub(crate) fn layer(module: &str) -> Option<(&str, &str)> {
    module.strip_prefix("layers.")?.split_once('.')
}

/// The place of queries, keys and values in a tensor that they share.
pub(crate) fn shared(module: &str) -> Option<u32> {
    match layer(module)?.1 {
        "attention.query" => Some(0),
        "attention.key" => Some(1),
        "attention.value" => Some(2),
        _ => None,
    }
}

/// The prefix of a model with a head around it.
pub(super) fn prefix(family: Family) -> &'static str {
    family.manner().prefixes.first().copied().unwrap_or_default()
}

/// What a family's files take off a parameter.
pub(super) fn taken_off(family: Family, parameter: &str) -> f32 {
    if parameter.ends_with(".gain") { family.manner().gains_from } else { 0.0 }
}

/// Whether a tensor is known to play no part: buffers that are recomputed, heads and poolers beside the model, the
/// output weights of a tied model (their equality is checked elsewhere) and of one that makes vectors.
pub(super) fn idle(architecture: &Architecture, prefix: &str, tensor: &str) -> bool {
    let inner = tensor.strip_prefix(prefix).unwrap_or(tensor);
    (architecture.family.manner().idle)(architecture, inner, tensor)
}
