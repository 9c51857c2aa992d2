//! From a Hugging Face `config.json` to an [`Architecture`].
//!
//! | module | what lives there |
//! |---|---|
//! | here | which family a file describes; what it says about tokens and context |
//! | `encoder` | classes of texts, and the pooling of sentence-transformers |
//! | `rotary` | how rotary positions are stretched |
//! | `dense` | dense layers of sentence-transformers |
//! | `fields` | fields of a JSON object by name, type and bounds |
//! | `error` | why a configuration is refused |

mod dense;
mod encoder;
mod error;
mod fields;
pub(crate) mod rotary;
#[cfg(test)]
mod tests;

use serde::Serialize;
use tensorlink_types::operator::MAX_REDUCTION;

use super::architecture::{Activation, Architecture, Output, Positions};
use super::family::Family;

pub(crate) use encoder::classes;
pub use error::ConfigError;
pub(crate) use fields::Fields;

/// Longest context: attention weighs all its tokens in one dot product (rule N-6).
pub const MAX_CONTEXT: u32 = MAX_REDUCTION as u32;
/// Largest vocabulary.
pub const MAX_VOCABULARY: u32 = 1 << 20;
/// Longest vector of a token.
pub const MAX_WIDTH: u32 = 1 << 14;
/// Longest inner vector of an MLP.
pub const MAX_HIDDEN: u32 = 1 << 16;
/// Most layers.
pub const MAX_LAYERS: u32 = 256;
/// Most query heads.
pub const MAX_HEADS: u32 = 1024;
/// Longest vector of a head.
pub const MAX_HEAD_WIDTH: u32 = 1024;
/// Largest number by whose root scores are divided.
pub const MAX_SCORE_SCALE: f64 = 1_048_576.0;
/// Longest context that a file may state, whatever is used of it.
pub(crate) const MAX_STATED_CONTEXT: u32 = 1 << 30;

/// Fields that name tokens; a model that takes images as well has them beside its text's.
pub(super) const TOKENS: [&str; 3] = ["bos_token_id", "eos_token_id", "pad_token_id"];

/// Why less context is used than a configuration states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextLimit {
    /// The state's own length is what a contract can recompute in one dot product, [`MAX_CONTEXT`].
    Reduction,
    /// Beyond its sliding window the model would forget; within it, it attends to everything.
    Window,
}

/// What a configuration says.
#[derive(Clone, PartialEq, Debug)]
pub struct Description {
    /// The model, its `context` as far as it is used.
    pub architecture: Architecture,
    /// The context that the file states.
    pub stated_context: u32,
    /// Why the architecture has less, if it has.
    pub limit: Option<ContextLimit>,
    /// The token that begins a text, if the file names one.
    pub beginning: Option<u32>,
    /// The tokens that end a text; none if the file names none.
    pub ends: Vec<u32>,
    /// The token that follows texts shorter than others beside them; the family's own if the file names none.
    pub padding: u32,
    /// Names of the classes that it tells texts apart by; none if it does not.
    pub classes: Vec<String>,
}

/// Reads `config.json`, and `1_Pooling/config.json` of a sentence-transformers folder if there is one. With it
/// the model makes vectors of texts, a decoder as well; an encoder without it is pooled by the mean.
///
/// # Errors
/// A [`ConfigError`] that names the field and what is supported.
pub fn describe(config: &[u8], pooling: Option<&[u8]>) -> Result<Description, ConfigError> {
    let fields = Fields::parse("config.json", config)?;
    let family = family(&fields)?;
    let manner = family.manner();
    let fields = (manner.text)(fields)?;
    if fields.value("quantization_config").is_some() {
        return Err(ConfigError::Quantised);
    }
    let (mut architecture, window) = (manner.read)(&fields)?;
    if let Some(pooling) = pooling
        && !matches!(architecture.output, Output::Classes(_))
    {
        architecture.output = Output::Embedding(encoder::read_pooling(pooling)?);
    }
    let stated_context = architecture.context;
    let allowed = [(MAX_CONTEXT, ContextLimit::Reduction), (window.unwrap_or(u32::MAX), ContextLimit::Window)];
    let mut limit = None;
    for (most, reason) in allowed {
        if architecture.context > most {
            (architecture.context, limit) = (most, Some(reason));
        }
    }
    let token = |field| fields.tokens(field, architecture.vocabulary);
    let (beginning, ends) = (token("bos_token_id")?.first().copied(), token("eos_token_id")?);
    let padding = fields.whole("pad_token_id", 0, architecture.vocabulary)?.unwrap_or(family.padding());
    let classes = classes(&fields)?;
    Ok(Description { architecture, stated_context, limit, beginning, ends, padding, classes })
}

/// The names in `model_type` and `architectures`, and the family whose files theirs are.
fn names() -> impl Iterator<Item = (Family, &'static str, &'static [&'static str])> {
    let of = |family: Family| family.manner().published.iter().map(move |(name, classes)| (family, *name, *classes));
    Family::ALL.into_iter().flat_map(of)
}

/// All families by their `model_type`, for messages.
fn families() -> String {
    names().map(|(_, name, _)| name).collect::<Vec<_>>().join(", ")
}

/// The `model_type` of a family, and the class that gives logits where there is one.
pub(super) fn stated(of: Family) -> Option<(&'static str, &'static str)> {
    let (name, classes) = of.manner().published.first()?;
    Some((name, classes.first()?))
}

/// The class of models with classes of a `model_type`, or of a family where none is said.
pub fn classifier(model_type: Option<&str>, family: Family) -> Option<&'static str> {
    let (.., classes) = names().find(|(of, name, _)| model_type.map_or(*of == family, |stated| *name == stated))?;
    classes.iter().find(|class| class.ends_with(encoder::CLASSIFIER)).copied()
}

/// The family that `model_type` and `architectures` agree on; one of them may be absent.
fn family(fields: &Fields) -> Result<Family, ConfigError> {
    let stated = fields.text("model_type")?;
    let class = fields.texts("architectures")?.first().copied();
    let by_type = match stated {
        Some(name) => {
            let entry = names().find(|(_, known, _)| *known == name);
            Some(entry.ok_or_else(|| ConfigError::UnknownModel(name.into()))?)
        }
        None => None,
    };
    let Some(class) = class else {
        return by_type.map(|(family, ..)| family).ok_or_else(|| fields.missing("model_type"));
    };
    let by_class = names().find(|(_, _, classes)| classes.contains(&class));
    match (by_type, by_class) {
        (Some((of_type, ..)), Some((of_class, ..))) if of_type != of_class => {
            Err(ConfigError::Disagreement { model_type: stated.unwrap_or_default().into(), architecture: class.into() })
        }
        (_, Some((family, ..))) => Ok(family),
        (Some((.., classes)), None) => {
            Err(ConfigError::Head { architecture: class.into(), supported: classes.join(", ") })
        }
        (None, None) => Err(ConfigError::UnknownModel(class.into())),
    }
}

/// The nonlinearity that a field names, or the family's own.
pub(crate) fn activation(fields: &Fields, field: &str, default: Activation) -> Result<Activation, ConfigError> {
    match fields.text(field)? {
        None => Ok(default),
        Some("gelu") => Ok(Activation::Gelu),
        // Three spellings of one formula.
        Some("gelu_new" | "gelu_pytorch_tanh" | "gelu_fast") => Ok(Activation::GeluTanh),
        Some("silu" | "swish") => Ok(Activation::Silu),
        Some("relu") => Ok(Activation::Relu),
        Some(other) => Err(ConfigError::Activation(other.into())),
    }
}

/// ε of a normalisation.
pub(crate) fn epsilon(fields: &Fields, field: &str, default: f64) -> Result<f64, ConfigError> {
    Ok(fields.number(field, 1e-20, 0.1)?.unwrap_or(default))
}

pub(crate) fn divides(whole: (&'static str, u32), part: (&'static str, u32)) -> Result<(), ConfigError> {
    if whole.1.is_multiple_of(part.1) {
        return Ok(());
    }
    Err(ConfigError::Division { whole: whole.0, whole_value: whole.1, part: part.0, part_value: part.1 })
}

/// Width of a head, bounded; `field` is the number of heads.
pub(crate) fn head_width(fields: &Fields, field: &str, width: u32) -> Result<u32, ConfigError> {
    if width <= MAX_HEAD_WIDTH {
        return Ok(width);
    }
    Err(ConfigError::OutOfRange {
        field: fields.name(field),
        value: fields.value(field).map(ToString::to_string).unwrap_or_default(),
        allowed: format!("so many heads that each is at most {MAX_HEAD_WIDTH} wide"),
    })
}

/// Learned positions, and the texts that fit once `first` rows are set aside.
pub(crate) fn learned(fields: &Fields, field: &str, first: u32) -> Result<(Positions, u32), ConfigError> {
    let rows = fields.size(field, MAX_STATED_CONTEXT)?;
    match rows.checked_sub(first) {
        Some(context) if context > 0 => Ok((Positions::Learned { first }, context)),
        _ => Err(ConfigError::OutOfRange {
            field: fields.name(field),
            value: rows.to_string(),
            allowed: format!("more than {first}, the rows before a text's first token"),
        }),
    }
}
