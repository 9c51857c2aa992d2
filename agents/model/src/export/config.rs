//! `config.json` of a decoder, and of an encoder that tells classes of texts apart.

use serde_json::{Map, Value, json};

use super::super::architecture::{Architecture, Output};
use super::super::config::{TOKENS, describe, stated};
use super::super::family::Family;
use super::ExportError;
use super::words::{object, spelled};

/// What [`describe`] reads an architecture from, and Hugging Face's own loaders; no token begins or ends a text.
///
/// # Errors
/// [`ExportError::Unsaid`] for an encoder, whose pooling stands elsewhere or whose classes have names
/// ([`classifier_config`]), and for whatever its family never has.
pub fn config(architecture: &Architecture) -> Result<Vec<u8>, ExportError> {
    let unsaid = || ExportError::Unsaid(format!("{:?}", architecture.family).to_lowercase());
    let write = architecture.family.manner().write.ok_or_else(unsaid)?;
    let fields = write(architecture);
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
