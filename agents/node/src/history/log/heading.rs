//! The first line of the file of events: which version of its form it has, how often something was taken back, and up
//! to where something was forgotten. Files of before have none.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The form that is written.
const VERSION: u32 = 1;
/// What the line begins with.
const BEGINS: &str = "{\"events\":";

/// The line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(in super::super) struct Heading {
    /// Version of the file's form.
    pub(super) events: u32,
    /// How often something was taken back.
    pub(super) undone: u64,
    /// The last block of which events were forgotten, if any were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) forgotten: Option<u64>,
}

impl Default for Heading {
    fn default() -> Self {
        Self { events: VERSION, undone: 0, forgotten: None }
    }
}

/// What a line of any version has.
#[derive(Deserialize)]
struct AnyVersion {
    events: u32,
}

impl Heading {
    pub(super) fn begins(line: &[u8]) -> bool {
        line.starts_with(BEGINS.as_bytes())
    }

    /// Reads a line that begins as one.
    ///
    /// # Errors
    /// If it is of a newer version, or damaged.
    pub(super) fn read(line: &[u8]) -> io::Result<Self> {
        let damaged = |error: serde_json::Error| {
            let what = format!("its first line is damaged ({error}); move the file away to read the chain anew");
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        let AnyVersion { events } = serde_json::from_slice(line).map_err(damaged)?;
        if events > VERSION {
            let what = format!(
                "a newer version of Tensorlink has written it (form {events}, this one reads {VERSION}); start that \
                 version, or name another folder by --data-dir. Nothing was changed"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        serde_json::from_slice(line).map_err(damaged)
    }

    /// Its line.
    pub(super) fn line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// How often something was taken back out of a file.
///
/// # Errors
/// When the disk fails, or a newer version has written the file.
pub(in super::super) fn times_undone(path: &Path) -> io::Result<u64> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut line = Vec::new();
    BufReader::new(file).read_until(b'\n', &mut line)?;
    if Heading::begins(&line) { Ok(Heading::read(&line)?.undone) } else { Ok(0) }
}
