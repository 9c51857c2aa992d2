//! The lines of the file, one after another; none is held longer than it is looked at.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::heading::Heading;
use crate::ports::chain::Mark;

/// Bytes read at once.
pub(super) const PIECE: usize = 1 << 18;
/// What a line begins with that says up to which block the file is complete.
const UNTIL: &[u8] = b"{\"until\":";

/// Such a line.
#[derive(Serialize, Deserialize)]
pub(super) struct Until {
    /// The block.
    pub(super) until: Mark,
    /// Events that were left when some were forgotten; in the line that was written then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) left: Option<u64>,
}

/// A line.
pub(in super::super) enum Line<'a> {
    /// The first.
    Heading(Heading),
    /// What is before it is complete.
    Until(Mark, Option<u64>),
    /// An event, not read yet.
    Event(&'a [u8]),
}

/// Whether a line is neither an event nor torn.
pub(super) fn is_aside(line: &[u8]) -> bool {
    line.starts_with(UNTIL) || Heading::begins(line)
}

/// The whole lines of a file.
pub(in super::super) struct Lines {
    file: BufReader<Take<File>>,
    line: Vec<u8>,
    read: u64,
}

impl Lines {
    /// Reads at most `bytes` of a file from the beginning; none if there is no file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(in super::super) fn open(path: &Path, bytes: u64) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Self { file: BufReader::with_capacity(PIECE, file.take(bytes)), line: Vec::new(), read: 0 }))
    }

    /// Bytes of the lines that were read.
    pub(super) const fn read(&self) -> u64 {
        self.read
    }

    /// The next line; none at the end, and where one is torn.
    ///
    /// # Errors
    /// When the disk fails, or a newer version has written the file.
    pub(in super::super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let taken = self.file.read_until(b'\n', &mut self.line)?;
        if self.line.last() != Some(&b'\n') {
            return Ok(None);
        }
        self.read = self.read.saturating_add(taken as u64);
        if Heading::begins(&self.line) {
            return Heading::read(&self.line).map(|heading| Some(Line::Heading(heading)));
        }
        if self.line.starts_with(UNTIL) {
            let until = serde_json::from_slice::<Until>(&self.line).ok();
            return Ok(until.map(|Until { until, left }| Line::Until(until, left)));
        }
        Ok(Some(Line::Event(&self.line)))
    }
}
