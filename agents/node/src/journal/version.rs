//! The version of the form of records and of files of lines. Those of before have none, and are read as they are.

use std::path::Path;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::JournalError;

/// The form that is written.
const VERSION: u32 = 1;

/// A record as it is written.
#[derive(Serialize)]
struct Written<'a, T> {
    version: u32,
    record: &'a T,
}

/// A record that has a version, whatever it holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnyRecord {
    version: u32,
    #[serde(rename = "record")]
    _record: IgnoredAny,
}

/// One of a known version.
#[derive(Deserialize)]
struct Known<T> {
    record: T,
}

/// The first line of a file of lines.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Heading {
    version: u32,
}

/// What an object holds that is one of these. A list might pass for one, too.
fn object<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    if text.trim_ascii_start().starts_with(b"{") { serde_json::from_slice(text).ok() } else { None }
}

/// Whether a version can be read.
fn check(path: &Path, version: u32) -> Result<(), JournalError> {
    if version <= VERSION {
        return Ok(());
    }
    Err(JournalError::Newer { path: path.to_owned(), version, known: VERSION })
}

/// A record's text.
pub(super) fn write<T: Serialize>(record: &T) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec_pretty(&Written { version: VERSION, record })
}

/// The record of a text.
pub(super) fn read<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, JournalError> {
    let record = match object::<AnyRecord>(text) {
        Some(AnyRecord { version, .. }) => {
            check(path, version)?;
            serde_json::from_slice(text).map(|Known { record }| record)
        }
        // Of before.
        None => serde_json::from_slice(text),
    };
    record.map_err(|error| JournalError::Format { path: path.to_owned(), reason: error.to_string() })
}

/// The first line of a file of lines.
pub(super) fn heading() -> Vec<u8> {
    format!("{{\"version\":{VERSION}}}\n").into_bytes()
}

/// Whether a line is such a heading.
///
/// # Errors
/// [`JournalError::Newer`].
pub(super) fn is_heading(path: &Path, line: &[u8]) -> Result<bool, JournalError> {
    match object::<Heading>(line) {
        Some(Heading { version }) => check(path, version).map(|()| true),
        None => Ok(false),
    }
}
