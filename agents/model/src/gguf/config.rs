//! The metadata of a file in the words of a Hugging Face folder's configuration, which [`describe`] then reads: what is
//! supported, and its bounds, are decided there alone.
//!
//! [`describe`]: super::super::describe

use serde_json::{Map, Value, json};

use super::super::config::stated;
use super::super::export::words::object;
use super::container::Gguf;
use super::error::GgufError;
use super::keys::{Keys, unsupported};

/// `config.json` of the model in a file.
///
/// # Errors
/// A [`GgufError`] that names the key.
pub fn config(file: &Gguf<'_>) -> Result<Map<String, Value>, GgufError> {
    let keys = Keys::of(file)?;
    keys.check()?;
    let fields = (keys.family.manner().keys)(&keys)?;
    let (model_type, class) = stated(keys.family).ok_or_else(|| GgufError::Architecture(keys.arch.to_owned()))?;
    let shared = json!({
        "model_type": model_type,
        "architectures": [class],
        "vocab_size": keys.embedding()?.shape.first(),
        "pad_token_id": file.token("tokenizer.ggml.padding_token_id")?,
        "torch_dtype": "float32",
    });
    Ok([shared, fields].into_iter().filter_map(object).flatten().collect())
}

/// `1_Pooling/config.json` of a model that says how it makes one vector of a text.
///
/// # Errors
/// A [`GgufError`] that names the key.
pub fn pooling(file: &Gguf<'_>) -> Result<Option<Value>, GgufError> {
    let keys = Keys::of(file)?;
    let key = keys.name("pooling_type");
    let mode = match file.whole(&key)? {
        None | Some(0) => return Ok(None),
        Some(1) => "mean",
        Some(2) => "cls",
        Some(3) => "lasttoken",
        Some(other) => return Err(unsupported(key, &other, "1 (mean), 2 (first token) or 3 (last token)")),
    };
    Ok(Some(json!({ "pooling_mode": mode })))
}
