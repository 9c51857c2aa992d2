//! What the metadata of a file say, by key and type.

use super::container::Gguf;
use super::error::GgufError;
use super::value::{List, Value};

impl<'a> Gguf<'a> {
    /// Whether there is a value.
    pub fn has(&self, key: &str) -> bool {
        self.metadata.contains_key(key)
    }

    /// A whole number that is not negative.
    ///
    /// # Errors
    /// [`GgufError::Type`] for anything else.
    pub fn whole(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.read(key, "a whole number", |value| match value {
            Value::Whole(number) => u64::try_from(*number).ok(),
            _ => None,
        })
    }

    /// A token by its number.
    ///
    /// # Errors
    /// [`GgufError::Type`] for anything else.
    pub fn token(&self, key: &str) -> Result<Option<u32>, GgufError> {
        let token = |value: &Value<'a>| match value {
            Value::Whole(number) => u32::try_from(*number).ok(),
            _ => None,
        };
        self.read(key, "the number of a token", token)
    }

    /// A number. One of 32 bits is the shortest that has them, as its publisher wrote it: 1e-5 and not
    /// 9.99999974737875e-6.
    ///
    /// # Errors
    /// [`GgufError::Type`] for anything else.
    pub fn number(&self, key: &str) -> Result<Option<f64>, GgufError> {
        let number = |value: &Value<'a>| match value {
            Value::Float(number) => number.to_string().parse().ok(),
            Value::Double(number) => Some(*number),
            // SAFETY of the cast: what it rounds is out of all bounds.
            Value::Whole(number) => Some(*number as f64),
            _ => None,
        };
        self.read(key, "a number", |value| number(value).filter(|number| number.is_finite()))
    }

    /// A yes or no.
    ///
    /// # Errors
    /// [`GgufError::Type`] for anything else.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.read(key, "true or false", |value| match value {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        })
    }

    /// A text.
    ///
    /// # Errors
    /// [`GgufError::Type`] for anything else.
    pub fn text(&self, key: &str) -> Result<Option<&'a str>, GgufError> {
        self.read(key, "a text", |value| match value {
            Value::Text(text) => Some(*text),
            _ => None,
        })
    }

    /// A list of texts.
    ///
    /// # Errors
    /// [`GgufError::Type`] for anything else.
    pub fn texts(&self, key: &str) -> Result<Option<&[&'a str]>, GgufError> {
        let Some(value) = self.metadata.get(key) else { return Ok(None) };
        match value {
            Value::List(List::Texts(texts)) => Ok(Some(texts)),
            _ => Err(mistyped(key, "a list of texts")),
        }
    }

    /// A list of whole numbers of 32 bits.
    ///
    /// # Errors
    /// [`GgufError::Type`] for anything else.
    pub fn wholes(&self, key: &str) -> Result<Option<Vec<i32>>, GgufError> {
        self.read(key, "a list of whole numbers", |value| match value {
            Value::List(List::Numbers { kind: 4 | 5, bytes }) => {
                Some(bytes.as_chunks().0.iter().copied().map(i32::from_le_bytes).collect())
            }
            _ => None,
        })
    }

    /// A list of 32-bit floats.
    ///
    /// # Errors
    /// [`GgufError::Type`] for anything else.
    pub fn numbers(&self, key: &str) -> Result<Option<Vec<f32>>, GgufError> {
        self.read(key, "a list of numbers", |value| match value {
            Value::List(List::Numbers { kind: 6, bytes }) => {
                Some(bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect())
            }
            _ => None,
        })
    }

    fn read<T>(
        &self,
        key: &str,
        expected: &'static str,
        as_type: impl FnOnce(&Value<'a>) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.metadata.get(key) else { return Ok(None) };
        as_type(value).map(Some).ok_or_else(|| mistyped(key, expected))
    }
}

fn mistyped(key: &str, expected: &'static str) -> GgufError {
    GgufError::Type { key: key.to_owned(), expected }
}
