//! BERT (Devlin et al. 2018) and RoBERTa (Liu et al. 2019), and the pooling of sentence-transformers.

use super::super::architecture::{Activation, Architecture, Family, Norm, Output, Placement, Pooling};
use super::{
    ConfigError, Fields, MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_VOCABULARY, MAX_WIDTH, activation, divides, epsilon,
    head_width, learned,
};

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

pub(super) fn read(fields: &Fields, family: Family, pooling: Option<&[u8]>) -> Result<Architecture, ConfigError> {
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
    let first = match family {
        // RoBERTa numbers its tokens from the one after padding.
        Family::Roberta => fields.whole("pad_token_id", 0, vocabulary)?.unwrap_or(family.padding()).saturating_add(1),
        _ => 0,
    };
    let classes = classes(fields)?.len();
    let kinds = fields.whole("type_vocab_size", 0, MAX_VOCABULARY)?.unwrap_or(2);
    let (positions, context) = learned(fields, "max_position_embeddings", first)?;
    Ok(Architecture {
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
            0 => Output::Embedding(pooling.map_or(Ok(Pooling::Mean), read_pooling)?),
            // SAFETY of the cast: at most 4096.
            classes => Output::Classes(classes as u32),
        },
        dense: Vec::new(),
        // A score is that of a pair of texts.
        pairs: classes == 1 && kinds > 1,
    })
}

/// Names of the classes that a model tells texts apart by, `LABEL_0` and `LABEL_1` unless said; none of a model that
/// does not.
pub(super) fn classes(fields: &Fields) -> Result<Vec<String>, ConfigError> {
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
