//! The file of remembered events, one JSON line each: one writer, and as many readers as there are roles that
//! follow it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use crate::ports::chain::EventAt;

/// Whole lines of the file that are events in order; stops at the first that is not.
pub(super) fn read(path: &Path) -> io::Result<Vec<EventAt>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut events: Vec<EventAt> = Vec::new();
    for line in BufReader::new(file).lines() {
        let Ok(event) = serde_json::from_str::<EventAt>(&line?) else { break };
        if events.last().is_some_and(|last| last.place() >= event.place()) {
            break;
        }
        events.push(event);
    }
    Ok(events)
}

/// The first event of the file; none if its first line is no event.
pub(super) fn first(path: &Path) -> io::Result<Option<EventAt>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let line = BufReader::new(file).lines().next().transpose()?;
    Ok(line.and_then(|line| serde_json::from_str(&line).ok()))
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
    /// Makes the file hold just these events.
    ///
    /// # Errors
    /// When the disk fails; the file is as it was, then.
    pub(super) fn create(path: &Path, events: &[EventAt]) -> io::Result<(Self, Written)> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut text = Vec::new();
        for event in events {
            serde_json::to_writer(&mut text, event)?;
            text.push(b'\n');
        }
        let aside = path.with_extension("tmp");
        std::fs::write(&aside, &text)?;
        std::fs::rename(&aside, path)?;
        let file = OpenOptions::new().append(true).open(path)?;
        let (sender, receiver) = watch::channel(text.len() as u64);
        Ok((Self { file, torn: false, bytes: sender }, Written { path: path.to_owned(), bytes: receiver }))
    }

    /// Adds an event, and tells those who read.
    ///
    /// # Errors
    /// When the disk fails; the same event can be added again, then.
    pub(super) fn append(&mut self, event: &EventAt) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
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
        let lines = BufReader::new(File::open(&written.path)?);
        Ok(Self { lines, read: 0, bytes: written.bytes.clone(), _written: written })
    }

    /// The next event; waits for it. None when nothing is written any more. Nothing is lost when it is dropped.
    ///
    /// # Errors
    /// When the disk fails, or somebody else wrote to the file.
    pub(super) async fn next(&mut self) -> io::Result<Option<EventAt>> {
        while self.read >= *self.bytes.borrow_and_update() {
            if self.bytes.changed().await.is_err() {
                return Ok(None);
            }
        }
        let mut line = String::new();
        let taken = self.lines.read_line(&mut line)?;
        self.read = self.read.saturating_add(taken as u64);
        Ok(Some(serde_json::from_str(&line)?))
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::{B256, JobId};

    use super::*;
    use crate::ports::Event;

    fn event(block: u64) -> EventAt {
        EventAt {
            block,
            block_hash: B256::ZERO,
            timestamp: block,
            log_index: 0,
            transaction: B256::ZERO,
            event: Event::JobClosing { job: JobId(block), convicted: false },
        }
    }

    /// A full disk takes a part of a line.
    #[tokio::test]
    async fn a_line_that_did_not_fit_is_whole_once_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let (mut writer, written) = LogWriter::create(&path, &[event(1)]).unwrap();
        let mut reader = LogReader::open(Arc::new(written)).unwrap();
        assert_eq!(reader.next().await.unwrap(), Some(event(1)));
        let room = std::mem::replace(&mut writer.file, File::open(&path).unwrap());
        assert!(writer.append(&event(2)).is_err(), "nothing can be written there");
        let line = serde_json::to_vec(&event(2)).unwrap();
        (&room).write_all(&line[..7]).unwrap();
        writer.file = room;
        for block in [2, 3] {
            writer.append(&event(block)).unwrap();
            assert_eq!(reader.next().await.unwrap(), Some(event(block)));
        }
        assert_eq!(read(&path).unwrap(), [1, 2, 3].map(event));
    }
}
