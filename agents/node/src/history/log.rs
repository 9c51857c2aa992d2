//! The file of remembered events, one JSON line each: one writer, and as many readers as there are roles that
//! follow it. Lines between them say up to which block it is complete: `{"until":{"block":…,"hash":…}}`. The first line
//! is its [`heading`]. Nobody holds more than a line of it.

pub(super) mod heading;
mod lines;
mod rewrite;
mod scan;

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use self::lines::{PIECE, Until, is_aside};
use crate::ports::chain::{EventAt, Mark};

pub(super) use self::lines::{Line, Lines};
pub(super) use self::rewrite::{Rewriting, take_back};
pub(super) use self::scan::{Scanned, scan};

/// The first event of the file; none if it has none.
pub(super) fn first(path: &Path) -> io::Result<Option<EventAt>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    for line in BufReader::new(file).lines() {
        let line = line?;
        if !is_aside(line.as_bytes()) {
            return Ok(serde_json::from_str(&line).ok());
        }
    }
    Ok(None)
}

/// Where the file is, and how many of its bytes are whole lines. Its writer goes on as long as somebody holds it.
pub(super) struct Written {
    path: PathBuf,
    bytes: watch::Receiver<u64>,
}

impl Written {
    /// Whether somebody still writes.
    pub(super) fn grows(&self) -> bool {
        self.bytes.has_changed().is_ok()
    }
}

/// Who writes the file.
pub(super) struct LogWriter {
    file: File,
    /// Whether the last line may be there in part: the disk was full.
    torn: bool,
    bytes: watch::Sender<u64>,
}

impl LogWriter {
    /// Goes on with a file that was looked through; makes one where there is none. What follows the last block of
    /// which it is complete is cut off.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn open(path: &Path, mut scanned: Scanned) -> io::Result<(Self, Written)> {
        if scanned.heading.is_none() {
            rewrite::head(path, &scanned)?;
            scanned.bytes = std::fs::metadata(path)?.len();
        }
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(scanned.bytes)?;
        let (sender, receiver) = watch::channel(scanned.bytes);
        Ok((Self { file, torn: false, bytes: sender }, Written { path: path.to_owned(), bytes: receiver }))
    }

    /// Adds an event, and tells those who read.
    ///
    /// # Errors
    /// When the disk fails; the same event can be added again, then.
    pub(super) fn append(&mut self, event: &EventAt) -> io::Result<()> {
        self.append_line(serde_json::to_vec(event)?)
    }

    /// Notes that the file is complete up to this block.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub(super) fn complete(&mut self, until: Mark) -> io::Result<()> {
        self.append_line(serde_json::to_vec(&Until { until, left: None })?)
    }

    fn append_line(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        if self.torn {
            self.file.set_len(*self.bytes.borrow())?;
        }
        // One write: a kill of this process leaves the line or nothing; a torn line of a dead machine is cut off at the
        // next start.
        self.torn = true;
        self.file.write_all(&line)?;
        self.torn = false;
        self.bytes.send_modify(|bytes| *bytes = bytes.saturating_add(line.len() as u64));
        Ok(())
    }

    /// Until nobody reads any more.
    pub(super) async fn unread(&self) {
        self.bytes.closed().await;
    }
}

/// Who reads the file, at a pace of its own.
pub(super) struct LogReader {
    lines: BufReader<File>,
    line: Vec<u8>,
    read: u64,
    bytes: watch::Receiver<u64>,
    _written: Arc<Written>,
}

impl LogReader {
    /// Reads from the beginning.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(super) fn open(written: Arc<Written>) -> io::Result<Self> {
        let lines = BufReader::with_capacity(PIECE, File::open(&written.path)?);
        Ok(Self { lines, line: Vec::new(), read: 0, bytes: written.bytes.clone(), _written: written })
    }

    /// The next event; waits for it. None when nothing is written any more. Nothing is lost when it is dropped.
    ///
    /// # Errors
    /// When the disk fails, or somebody else wrote to the file.
    pub(super) async fn next(&mut self) -> io::Result<Option<EventAt>> {
        loop {
            while self.read >= *self.bytes.borrow_and_update() {
                if self.bytes.changed().await.is_err() {
                    return Ok(None);
                }
            }
            self.line.clear();
            let taken = self.lines.read_until(b'\n', &mut self.line)?;
            self.read = self.read.saturating_add(taken as u64);
            if !is_aside(&self.line) {
                return Ok(Some(serde_json::from_slice(&self.line)?));
            }
        }
    }
}

#[cfg(test)]
mod tests;
