//! Fields that we take at their defaults only. Whatever else they hold is not kept.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::error::ApiError;

/// As much of a value as tells whether it is a default.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) enum Odd {
    #[default]
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    /// An array or object without elements.
    Empty,
    Filled,
}

/// Refuses a field, unless it is absent, null, or at one of its defaults.
///
/// # Errors
/// With what is offered instead.
pub(super) fn only(field: &'static str, value: &Odd, defaults: &[Odd], offered: &str) -> Result<(), ApiError> {
    if *value == Odd::Null || defaults.contains(value) {
        return Ok(());
    }
    Err(ApiError::invalid(format!("{field} is not supported with this value: {offered}.")).at(field))
}

impl<'de> Deserialize<'de> for Odd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OddVisitor)
    }
}

struct OddVisitor;

impl<'de> Visitor<'de> for OddVisitor {
    type Value = Odd;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Odd, E> {
        Ok(Odd::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Odd, E> {
        Ok(Odd::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Odd, E> {
        Ok(Odd::Number(value as f64))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Odd, E> {
        Ok(Odd::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Odd, E> {
        Ok(Odd::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Odd, E> {
        Ok(Odd::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Odd, A::Error> {
        let mut kind = Odd::Empty;
        while seq.next_element::<Odd>()?.is_some() {
            kind = Odd::Filled;
        }
        Ok(kind)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Odd, A::Error> {
        let mut kind = Odd::Empty;
        while map.next_entry::<String, Odd>()?.is_some() {
            kind = Odd::Filled;
        }
        Ok(kind)
    }
}
