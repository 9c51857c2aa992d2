//! A vector file: generated text, compared with what is committed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tensorlink_num::OpError;
use tensorlink_num::arbitrary::CaseError;
use thiserror::Error;

/// Largest file, so that forge parses it quickly.
pub const MAX_BYTES: usize = 400_000;

/// One committed JSON file.
#[derive(Clone, Copy, Debug)]
pub struct VectorFile {
    /// Name in this crate's folder.
    pub name: &'static str,
    /// Makes its text, the same on every machine.
    pub generate: fn() -> Result<String, VectorError>,
    /// Reads a text and checks the reference against every case in it.
    pub verify: fn(&str) -> Result<Coverage, VectorError>,
}

/// What a verifier read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Cases checked.
    pub cases: usize,
    /// Rules they belong to.
    pub rules: BTreeSet<String>,
}

/// What is wrong with a vector file.
#[derive(Debug, Error)]
pub enum VectorError {
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The committed text differs from the generated one.
    #[error(
        "{name} line {line} differs from what `cargo run -p tensorlink-vectors` writes: run it and review the change"
    )]
    Stale {
        /// The file.
        name: &'static str,
        /// First line that differs, from 1.
        line: usize,
    },
    /// The generated text is larger than [`MAX_BYTES`].
    #[error("{name} would be {bytes} bytes, more than {MAX_BYTES}: draw fewer or smaller cases")]
    TooLarge {
        /// The file.
        name: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// A case is in the file that its verifier did not check.
    #[error("{name} has {present} cases, {checked} were checked: teach its verifier the others")]
    Unread {
        /// The file.
        name: &'static str,
        /// Cases in the file.
        present: usize,
        /// Cases checked.
        checked: usize,
    },
    /// The implementation disagrees with a case.
    #[error("{case}: {what} is {actual}, the file says {expected}")]
    Mismatch {
        /// Rule and name of the case.
        case: String,
        /// What was compared.
        what: String,
        /// The file's value.
        expected: String,
        /// The implementation's.
        actual: String,
    },
    /// A field of a case does not hold what the README says.
    #[error("{case}: malformed {field}")]
    Malformed {
        /// Rule and name of the case.
        case: String,
        /// The field.
        field: &'static str,
    },
    /// Not the JSON that the README describes.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A case could not be drawn.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// The reference refuses a case.
    #[error(transparent)]
    Operator(#[from] OpError),
}

impl VectorFile {
    /// Where the committed file lies.
    pub fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.name)
    }

    /// The text that should be committed.
    ///
    /// # Errors
    /// The generator's; [`VectorError::TooLarge`].
    pub fn text(&self) -> Result<String, VectorError> {
        let text = (self.generate)()?;
        if text.len() > MAX_BYTES {
            return Err(VectorError::TooLarge { name: self.name, bytes: text.len() });
        }
        Ok(text)
    }

    /// Writes the file; returns its size in bytes.
    ///
    /// # Errors
    /// As [`Self::text`]; [`VectorError::Io`].
    pub fn write(&self) -> Result<usize, VectorError> {
        let (text, path) = (self.text()?, self.path());
        fs::write(&path, &text).map_err(|source| VectorError::Io { path, source })?;
        Ok(text.len())
    }

    /// The committed text.
    ///
    /// # Errors
    /// [`VectorError::Io`].
    pub fn read(&self) -> Result<String, VectorError> {
        let path = self.path();
        fs::read_to_string(&path).map_err(|source| VectorError::Io { path, source })
    }

    /// Verifies every case of a text.
    ///
    /// # Errors
    /// The verifier's; [`VectorError::Unread`].
    pub fn verify(&self, text: &str) -> Result<Coverage, VectorError> {
        let coverage = (self.verify)(text)?;
        let present = count_cases(&serde_json::from_str(text)?);
        if present != coverage.cases {
            return Err(VectorError::Unread { name: self.name, present, checked: coverage.cases });
        }
        Ok(coverage)
    }

    /// Verifies the committed file and compares it with the generated one.
    ///
    /// # Errors
    /// As [`Self::verify`], [`Self::text`], [`Self::read`]; [`VectorError::Stale`].
    pub fn check(&self) -> Result<Coverage, VectorError> {
        let (committed, generated) = (self.read()?, self.text()?);
        if committed != generated {
            let same = committed.lines().zip(generated.lines()).take_while(|(a, b)| a == b).count();
            return Err(VectorError::Stale { name: self.name, line: same + 1 });
        }
        self.verify(&committed)
    }
}

impl Coverage {
    /// Counts a case that was checked.
    pub fn add(&mut self, rule: &str) {
        self.cases += 1;
        self.rules.insert(rule.to_owned());
    }
}

/// Every object inside an array of the top-level object is a case.
fn count_cases(file: &Value) -> usize {
    let arrays = file.as_object().into_iter().flat_map(|o| o.values()).filter_map(Value::as_array);
    arrays.map(Vec::len).sum()
}

/// Text of a file: an object of arrays, one case a line.
///
/// # Errors
/// [`VectorError::Json`] if a case cannot be written.
pub fn text<T: Serialize>(arrays: &[(&str, Vec<T>)]) -> Result<String, VectorError> {
    let mut parts = Vec::with_capacity(arrays.len());
    for (name, cases) in arrays {
        let lines: Vec<String> = cases.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        parts.push(format!("\"{name}\": [\n{}\n]", lines.join(",\n")));
    }
    Ok(format!("{{\n{}\n}}\n", parts.join(",\n")))
}

/// Parses a file.
///
/// # Errors
/// [`VectorError::Json`] for anything but the described fields.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, VectorError> {
    Ok(serde_json::from_str(text)?)
}

/// Compares a value with the file's.
///
/// # Errors
/// [`VectorError::Mismatch`].
pub fn compare<T: PartialEq + ToString>(case: &str, what: &str, expected: &T, actual: &T) -> Result<(), VectorError> {
    if expected == actual {
        return Ok(());
    }
    let (expected, actual) = (expected.to_string(), actual.to_string());
    Err(VectorError::Mismatch { case: case.to_owned(), what: what.to_owned(), expected, actual })
}
