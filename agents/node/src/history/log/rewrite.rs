//! Puts another file in the place of the one that is there, line by line; that one stays whole until then.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::heading::Heading;
use super::lines::{Line, Lines, Until};
use super::scan::{Brief, Scanned};
use crate::ports::chain::Mark;

/// A file that is written aside.
pub(in super::super) struct Rewriting {
    path: PathBuf,
    aside: PathBuf,
    file: BufWriter<File>,
    /// Events written.
    events: u64,
}

impl Rewriting {
    fn begin(path: &Path, heading: Heading) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let aside = path.with_extension("tmp");
        let mut file = BufWriter::new(File::create(&aside)?);
        file.write_all(&heading.line()?)?;
        Ok(Self { path: path.to_owned(), aside, file, events: 0 })
    }

    /// Of a file of which something is forgotten, up to a block.
    ///
    /// # Errors
    /// When the disk fails.
    pub(in super::super) fn forgetting(path: &Path, scanned: &Scanned, block: u64) -> io::Result<Self> {
        let heading = scanned.heading.unwrap_or_default();
        Self::begin(path, Heading { forgotten: heading.forgotten.max(Some(block)), ..heading })
    }

    /// Writes an event's line.
    ///
    /// # Errors
    /// When the disk fails.
    pub(in super::super) fn event(&mut self, line: &[u8]) -> io::Result<()> {
        self.events += 1;
        self.file.write_all(line)
    }

    /// It is complete up to this block, and takes the other's place.
    ///
    /// # Errors
    /// When the disk fails; the old file is as it was, then.
    pub(in super::super) fn finish(mut self, until: Option<Mark>, is_left: bool) -> io::Result<()> {
        if let Some(until) = until {
            serde_json::to_writer(&mut self.file, &Until { until, left: is_left.then_some(self.events) })?;
            self.file.write_all(b"\n")?;
        }
        self.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&self.aside, &self.path)
    }
}

/// Gives a file its heading that has none, or makes one.
///
/// # Errors
/// When the disk fails; the file is as it was, then.
pub(in super::super) fn head(path: &Path, scanned: &Scanned) -> io::Result<()> {
    let mut anew = Rewriting::begin(path, Heading::default())?;
    if let Some(mut lines) = Lines::open(path, scanned.bytes)? {
        while let Some(line) = lines.next()? {
            if let Line::Event(text) = line {
                anew.event(text)?;
            }
        }
    }
    anew.finish(scanned.until(), false)
}

/// Forgets a block and all later ones, up to which everything was there. Where something was forgotten that far back,
/// all of it is: it is told from the first on.
///
/// # Errors
/// When the disk fails, or a newer version has written the file; it is as it was, then.
pub(in super::super) fn take_back(path: &Path, from: u64) -> io::Result<()> {
    let scanned = super::scan(path)?;
    let heading = scanned.heading.unwrap_or_default();
    let undone = heading.undone.saturating_add(1);
    if heading.forgotten.is_some_and(|block| block >= from) {
        return Rewriting::begin(path, Heading { undone, ..Heading::default() })?.finish(None, false);
    }
    let mut anew = Rewriting::begin(path, Heading { undone, ..heading })?;
    let mut last = None;
    if let Some(mut lines) = Lines::open(path, scanned.bytes)? {
        while let Some(line) = lines.next()? {
            let Line::Event(text) = line else { continue };
            let brief: Brief = serde_json::from_slice(text)?;
            if brief.block >= from {
                break;
            }
            anew.event(text)?;
            last = Some(brief.mark());
        }
    }
    anew.finish(scanned.until().filter(|until| until.block < from).or(last), false)
}
