//! Classes of texts, and the pooling of sentence-transformers.

use super::super::architecture::Pooling;
use super::{ConfigError, Fields};

/// Poolings that sentence-transformers knows, by their flags.
const FLAGS: [&str; 6] = [
    "pooling_mode_mean_tokens",
    "pooling_mode_cls_token",
    "pooling_mode_max_tokens",
    "pooling_mode_mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens",
    "pooling_mode_lasttoken",
];

/// The class of models that tell classes of texts apart, whatever family they are of.
pub(super) const CLASSIFIER: &str = "ForSequenceClassification";
/// Most classes: a softmax adds as many (rule N-6).
const MAX_CLASSES: usize = super::MAX_CONTEXT as usize;

/// Names of the classes that a model tells texts apart by, `LABEL_0` and `LABEL_1` unless said; none of a model that
/// does not.
pub(crate) fn classes(fields: &Fields) -> Result<Vec<String>, ConfigError> {
    if !fields.texts("architectures")?.first().is_some_and(|class| class.ends_with(CLASSIFIER)) {
        return Ok(Vec::new());
    }
    let Some(names) = fields.object("id2label")? else { return Ok(["LABEL_0", "LABEL_1"].map(String::from).into()) };
    if !(1..=MAX_CLASSES).contains(&names.count()) {
        return Err(ConfigError::OutOfRange {
            field: fields.name("id2label"),
            value: format!("a table of {}", names.count()),
            allowed: format!("1 to {MAX_CLASSES} classes"),
        });
    }
    let name = |number: usize| {
        let field = number.to_string();
        names.text(&field)?.map(str::to_owned).ok_or_else(|| names.missing(&field))
    };
    (0..names.count()).map(name).collect()
}

/// Reads `1_Pooling/config.json` of an encoder or a decoder, in the form of flags or in that of one name.
pub(super) fn read_pooling(json: &[u8]) -> Result<Pooling, ConfigError> {
    let fields = Fields::parse("1_Pooling/config.json", json)?;
    let mut asked: Vec<&str> = fields.text("pooling_mode")?.into_iter().collect();
    for flag in FLAGS {
        if fields.flag(flag)? == Some(true) {
            asked.push(flag);
        }
    }
    match asked.as_slice() {
        ["mean" | "pooling_mode_mean_tokens"] => Ok(Pooling::Mean),
        ["mean_sqrt_len_tokens" | "pooling_mode_mean_sqrt_len_tokens"] => Ok(Pooling::RootMean),
        ["max" | "pooling_mode_max_tokens"] => Ok(Pooling::Max),
        ["lasttoken" | "pooling_mode_lasttoken"] => Ok(Pooling::Last),
        ["cls" | "pooling_mode_cls_token"] => Ok(Pooling::First),
        ["weightedmean" | "pooling_mode_weightedmean_tokens"] => Ok(Pooling::WeightedMean),
        [] => Err(ConfigError::Pooling("no pooling".into())),
        other => Err(ConfigError::Pooling(other.join(" and "))),
    }
}
