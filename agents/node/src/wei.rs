//! Amounts in files and for programs: a decimal string of wei, which every language reads exactly. For
//! `#[serde(with = "tensorlink_node::wei")]`.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes digits in quotes.
///
/// # Errors
/// The format's.
pub fn serialize<S: Serializer>(wei: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(wei)
}

/// Reads digits in quotes.
///
/// # Errors
/// The format's, or if it is no amount.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::custom(format!("{text:?} is no amount in wei")))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(PartialEq, Debug, Serialize, Deserialize)]
    struct Purse(#[serde(with = "super")] u128);

    #[test]
    fn amounts_of_any_size_are_strings() {
        for amount in [0, 1, 1 << 53, u128::MAX] {
            let text = serde_json::to_string(&Purse(amount)).unwrap();
            assert_eq!(text, format!("\"{amount}\""));
            assert_eq!(serde_json::from_str::<Purse>(&text).unwrap(), Purse(amount));
        }
        for wrong in ["\"-1\"", "\"1.5\"", "\"0x10\"", "1", "1.5", "null"] {
            assert!(serde_json::from_str::<Purse>(wrong).is_err(), "{wrong}");
        }
    }
}
