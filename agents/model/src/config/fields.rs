//! Fields of a JSON configuration, read by name, type and bounds. `null` counts as absent, as Hugging Face writes it.

use serde_json::{Map, Value};

use super::ConfigError;

/// Largest configuration file in bytes.
const MAX_BYTES: usize = 1 << 20;

/// One object of a configuration file.
pub(crate) struct Fields {
    file: &'static str,
    /// Names of the objects around it, each followed by a dot.
    path: String,
    values: Map<String, Value>,
}

impl Fields {
    pub(crate) fn parse(file: &'static str, json: &[u8]) -> Result<Self, ConfigError> {
        if json.len() > MAX_BYTES {
            return Err(ConfigError::TooLarge { file, bytes: json.len(), most: MAX_BYTES });
        }
        match serde_json::from_slice(json) {
            Ok(Value::Object(values)) => Ok(Self { file, path: String::new(), values }),
            Ok(_) => Err(ConfigError::Syntax { file, message: "not a JSON object".into() }),
            Err(error) => Err(ConfigError::Syntax { file, message: error.to_string() }),
        }
    }

    pub(crate) fn name(&self, field: &str) -> String {
        format!("{}{field}", self.path)
    }

    /// Number of fields.
    pub(crate) fn count(&self) -> usize {
        self.values.len()
    }

    /// A value that is there and not `null`.
    pub(crate) fn value(&self, field: &str) -> Option<&Value> {
        self.values.get(field).filter(|value| !value.is_null())
    }

    pub(crate) fn missing(&self, field: &str) -> ConfigError {
        ConfigError::Missing { file: self.file, field: self.name(field) }
    }

    fn mistyped(&self, field: &str, value: &Value, expected: &'static str) -> ConfigError {
        let mut value = value.to_string();
        if let Some((end, _)) = value.char_indices().nth(60) {
            value.truncate(end);
            value.push('…');
        }
        ConfigError::Type { file: self.file, field: self.name(field), value, expected }
    }

    /// A whole number of `least..=most`.
    pub(crate) fn whole(&self, field: &str, least: u32, most: u32) -> Result<Option<u32>, ConfigError> {
        let Some(value) = self.value(field) else { return Ok(None) };
        // Anything that is no u64 but a number is outside all bounds: negative, fractional or huge.
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        match number {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ if value.is_number() => Err(ConfigError::OutOfRange {
                field: self.name(field),
                value: value.to_string(),
                allowed: format!("a whole number from {least} to {most}"),
            }),
            _ => Err(self.mistyped(field, value, "a whole number")),
        }
    }

    /// A size: a whole number of `1..=most` that must be there.
    pub(crate) fn size(&self, field: &str, most: u32) -> Result<u32, ConfigError> {
        self.whole(field, 1, most)?.ok_or_else(|| self.missing(field))
    }

    /// A number of `least..=most`.
    pub(crate) fn number(&self, field: &str, least: f64, most: f64) -> Result<Option<f64>, ConfigError> {
        let Some(value) = self.value(field) else { return Ok(None) };
        let Some(number) = value.as_f64() else { return Err(self.mistyped(field, value, "a number")) };
        if number >= least && number <= most {
            return Ok(Some(number));
        }
        let allowed = format!("a number from {least:e} to {most:e}");
        Err(ConfigError::OutOfRange { field: self.name(field), value: value.to_string(), allowed })
    }

    pub(crate) fn flag(&self, field: &str) -> Result<Option<bool>, ConfigError> {
        let Some(value) = self.value(field) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.mistyped(field, value, "true or false"))
    }

    pub(crate) fn text(&self, field: &str) -> Result<Option<&str>, ConfigError> {
        let Some(value) = self.value(field) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.mistyped(field, value, "a string"))
    }

    /// A list of strings; empty when absent.
    pub(crate) fn texts(&self, field: &str) -> Result<Vec<&str>, ConfigError> {
        let Some(value) = self.value(field) else { return Ok(Vec::new()) };
        let texts = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
        texts.ok_or_else(|| self.mistyped(field, value, "a list of strings"))
    }

    pub(crate) fn object(&self, field: &str) -> Result<Option<Self>, ConfigError> {
        let Some(value) = self.value(field) else { return Ok(None) };
        let Some(values) = value.as_object() else { return Err(self.mistyped(field, value, "an object")) };
        Ok(Some(Self { file: self.file, path: format!("{}{field}.", self.path), values: values.clone() }))
    }

    /// These fields, and of others those of these names that are absent here.
    pub(crate) fn or_else(mut self, others: &Self, names: &[&str]) -> Self {
        for name in names {
            if let (None, Some(value)) = (self.value(name), others.value(name)) {
                self.values.insert((*name).to_owned(), value.clone());
            }
        }
        self
    }

    /// A token, or a list of tokens, each below `vocabulary`; empty when absent.
    pub(crate) fn tokens(&self, field: &str, vocabulary: u32) -> Result<Vec<u32>, ConfigError> {
        let Some(value) = self.value(field) else { return Ok(Vec::new()) };
        let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let token = |token: &Value| {
            let Some(number) = token.as_i64() else {
                return Err(self.mistyped(field, value, "a token or a list of tokens"));
            };
            u32::try_from(number).ok().filter(|token| *token < vocabulary).ok_or_else(|| ConfigError::OutOfRange {
                field: self.name(field),
                value: number.to_string(),
                allowed: format!("a token below vocab_size, {vocabulary}"),
            })
        };
        list.iter().map(token).collect()
    }

    /// Refuses a flag that is set against what operators compute.
    pub(crate) fn must(&self, field: &str, only: bool) -> Result<(), ConfigError> {
        match self.flag(field)? {
            Some(value) if value != only => Err(ConfigError::Unsupported {
                field: self.name(field),
                value: value.to_string(),
                supported: only.to_string(),
            }),
            _ => Ok(()),
        }
    }
}
